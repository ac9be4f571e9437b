import type { Command } from 'commander';
import { type CliCommand, renderExamples } from '../command.ts';
import type { InitOptions } from '../init.ts';
import { print } from '../output.ts';

/** `toolgate init`: a first configuration for a backend. */
export const INIT_COMMAND: CliCommand = {
  name: 'init',
  register(program: Command): void {
    program
      .command('init')
      .description('write a configuration that works, keys and an API key, for a backend that you name')
      .option('--openapi <file>', 'the OpenAPI document of the backend')
      .option('--upstream <url>', 'where the backend is; its document is looked for there, where none is named')
      .option('--mcp <server...>', 'an MCP server: its address, or the program to run and its arguments')
      .option('--name <name>', 'name of the route, and the first part of its path', 'api')
      .option('--dir <folder>', 'where the files go', '.')
      .option('--listen <address>', 'where the gateway is to listen', '127.0.0.1:8080')
      .addHelpText(
        'after',
        renderExamples(
          'toolgate init --openapi openapi.yaml --name shop',
          'toolgate init --mcp https://search.example.com/mcp --name search',
          'toolgate init --upstream http://127.0.0.1:9100 --dir gateway',
        ),
      )
      .action(async (options: InitOptions) => {
        const { makeStarter } = await import('../init.ts');
        await print(await makeStarter(options));
      });
  },
};
