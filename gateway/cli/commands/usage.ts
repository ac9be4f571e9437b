import type { Command } from 'commander';
import { type CliCommand, renderExamples } from '../command.ts';

/** `toolgate usage`: what is left of limits, as a running gateway counts them. */
export const USAGE_COMMAND: CliCommand = {
  name: 'usage',
  register(program: Command): void {
    program
      .command('usage')
      .description(
        "show what is used of limits and pools in a running gateway; an approver's key is read from TOOLGATE_APPROVER_KEY",
      )
      .option('--url <url>', 'the gateway', 'http://127.0.0.1:8080')
      .option('--json', 'print JSON')
      .addHelpText('after', renderExamples('toolgate usage', 'toolgate usage --url https://gateway.internal --json'))
      .action(async (options: { url: string; json?: boolean }) => {
        const { showUsage } = await import('../usage.ts');
        await showUsage(options);
      });
  },
};
