import type { Command } from 'commander';
import { type CliCommand, renderExamples } from '../command.ts';

/** `toolgate keys`: signing keys, as pairs of PEM files. */
export const KEYS_COMMAND: CliCommand = {
  name: 'keys',
  register(program: Command): void {
    const keys = program.command('keys').description('make and show the keys that sign histories and receipts');
    keys
      .command('new')
      .description(
        'make a pair: NAME.pem, the signing key, for its owner alone (mode 0600), and NAME.pub, the public key',
      )
      .argument('<name>', 'name of the pair, as a file name without its ending')
      .option('--dir <folder>', 'where the files go', 'keys')
      .option('--json', 'print JSON')
      .addHelpText('after', renderExamples('toolgate keys new gateway', 'toolgate keys new desk --dir ./issuers'))
      .action(async (name: string, options: { dir: string; json?: boolean }) => {
        const { makeKeyPair } = await import('../keys.ts');
        await makeKeyPair(name, options.dir, options.json === true);
      });
    keys
      .command('show')
      .description('show the public key of a PEM file: its id in checkpoints, its 32 bytes in base64url, its PEM text')
      .argument('<file>', 'a signing key (.pem) or a public key (.pub)')
      .option('--json', 'print JSON')
      .addHelpText(
        'after',
        renderExamples('toolgate keys show keys/gateway.pem', 'toolgate keys show keys/desk.pub --json'),
      )
      .action(async (file: string, options: { json?: boolean }) => {
        const { showKey } = await import('../keys.ts');
        await showKey(file, options.json === true);
      });
  },
};
