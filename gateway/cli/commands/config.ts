import type { Command } from 'commander';
import { type CliCommand, renderExamples } from '../command.ts';
import { print } from '../output.ts';

/** `toolgate validate`: every fault of a config, each at its place. */
export const VALIDATE_COMMAND: CliCommand = {
  name: 'validate',
  register(program: Command): void {
    program
      .command('validate')
      .description('tell every fault of a configuration with its file, line and column: exit 0 good, 1 faulty')
      .argument('[file]', 'the configuration', 'gateway.yaml')
      .option('--json', 'print JSON')
      .addHelpText('after', renderExamples('toolgate validate gateway.yaml', 'toolgate validate --json'))
      .action(async (file: string, options: { json?: boolean }) => {
        const { validateConfig } = await import('../../catalogue/validate.ts');
        const { lookAtServers } = await import('../../mcp/look-at-servers.ts');
        const { catalogueDeps } = await import('../../load/catalogue-deps.ts');
        const read = { env: process.env, json: options.json === true };
        const { text, exitCode } = await lookAtServers((mcp) =>
          validateConfig(file, read, catalogueDeps({ thorough: true, mcp })),
        );
        await print(text);
        process.exitCode = exitCode;
      });
  },
};

/** `toolgate tools`: the catalogue that a config makes. */
export const TOOLS_COMMAND: CliCommand = {
  name: 'tools',
  register(program: Command): void {
    program
      .command('tools')
      .description('show the tools of a configuration and what was said of each')
      .argument('[file]', 'the configuration', 'gateway.yaml')
      .option('--json', 'print JSON, with schemas and descriptions')
      .addHelpText('after', renderExamples('toolgate tools gateway.yaml', 'toolgate tools --json'))
      .action(async (file: string, options: { json?: boolean }) => {
        const { requireWhole } = await import('../require-config.ts');
        const { renderTools } = await import('../../catalogue/render-tools.ts');
        const { built } = await requireWhole(file);
        await print(renderTools(built, { json: options.json === true }));
      });
  },
};
