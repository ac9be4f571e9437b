import type { Command } from 'commander';
import { type CliCommand, renderExamples } from '../command.ts';

/** `toolgate store`: is a store sound, and a copy of it. */
export const STORE_COMMAND: CliCommand = {
  name: 'store',
  register(program: Command): void {
    const store = program.command('store').description('look at a store, and copy it');
    store
      .command('check')
      .description(
        'say whether a store is sound, while a gateway uses it or not; changes nothing: exit 0 sound, 1 not, 2 cannot tell',
      )
      .option(
        '-c, --config <file>',
        'the configuration that says where the store is, and its encryption key',
        'gateway.yaml',
      )
      .option('--json', 'print JSON')
      .addHelpText(
        'after',
        renderExamples('toolgate store check', 'toolgate store check -c /etc/toolgate/gateway.yaml --json'),
      )
      .action(async (options: { config: string; json?: boolean }) => {
        const { runStoreCheck } = await import('../store.ts');
        process.exitCode = await runStoreCheck(options);
      });
    store
      .command('backup')
      .description(
        'copy a SQLite store into a new file while a gateway uses it, and look at the copy: exit 0 sound, 1 not, 2 not made',
      )
      .argument('<file>', 'the copy; it must not be there yet')
      .option(
        '-c, --config <file>',
        'the configuration that says where the store is, and its encryption key',
        'gateway.yaml',
      )
      .addHelpText('after', renderExamples('toolgate store backup /backup/toolgate.db -c /etc/toolgate/gateway.yaml'))
      .action(async (file: string, options: { config: string }) => {
        const { runStoreBackup } = await import('../store.ts');
        process.exitCode = await runStoreBackup(file, options);
      });
  },
};
