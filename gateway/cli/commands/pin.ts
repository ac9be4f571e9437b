import type { Command } from 'commander';
import { type CliCommand, renderExamples } from '../command.ts';
import { print } from '../output.ts';

/** `toolgate pin`: what MCP servers say of their tools, held to what an operator has seen. */
export const PIN_COMMAND: CliCommand = {
  name: 'pin',
  register(program: Command): void {
    program
      .command('pin')
      .description(
        'pin the definitions of MCP tools as their servers list them now; with --diff exit 1 where any differs',
      )
      .argument('[file]', 'the configuration', 'gateway.yaml')
      .option('--server <name...>', 'the tools of these servers alone')
      .option('--diff', 'show what differs from the pins and write nothing')
      .option('--json', 'print JSON')
      .addHelpText(
        'after',
        renderExamples('toolgate pin gateway.yaml', 'toolgate pin --diff', 'toolgate pin --server files'),
      )
      .action(async (file: string, options: { server?: string[]; diff?: boolean; json?: boolean }) => {
        const { pin } = await import('../pin.ts');
        const { text, differs } = await pin(file, {
          servers: options.server ?? [],
          diff: options.diff === true,
          json: options.json === true,
        });
        await print(text);
        process.exitCode = options.diff === true && differs ? 1 : 0;
      });
  },
};
