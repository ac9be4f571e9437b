import { type Command, Option } from 'commander';
import { type CliCommand, renderExamples } from '../command.ts';
import type { ServeOptions } from '../serve.ts';

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** `toolgate serve`: runs the gateway until a signal ends it. */
export const SERVE_COMMAND: CliCommand = {
  name: 'serve',
  register(program: Command): void {
    program
      .command('serve')
      .description('run the gateway; SIGHUP reloads its config, SIGUSR2 reopens its audit log, SIGTERM ends it')
      .option('-c, --config <file>', 'the configuration', 'gateway.yaml')
      .option('--watch', 'reload by itself when a file that the configuration was read from changes')
      .option('--lame-duck <time>', 'after SIGTERM, take calls for so long while /readyz already says 503', '0s')
      .addOption(new Option('--log-level <level>', 'of the log on standard error').choices(LOG_LEVELS).default('info'))
      .addHelpText(
        'after',
        renderExamples('toolgate serve', 'toolgate serve -c /etc/toolgate/gateway.yaml --watch --lame-duck 5s'),
      )
      .action(async (options: ServeOptions) => {
        const { serve } = await import('../serve.ts');
        await serve(options);
      });
  },
};
