import type { Command } from 'commander';
import { type CliCommand, renderExamples } from '../command.ts';

/** `toolgate outcomes`: calls of which nobody knows whether they were done, for an approver to settle. */
export const OUTCOMES_COMMAND: CliCommand = {
  name: 'outcomes',
  register(program: Command): void {
    const outcomes = program
      .command('outcomes')
      .description(
        "settle unknown outcomes of a running gateway; an approver's key is read from TOOLGATE_APPROVER_KEY",
      );
    outcomes
      .command('list')
      .description('show calls of which nobody knows whether they were done')
      .option('--url <url>', 'the gateway', 'http://127.0.0.1:8080')
      .option('--json', 'print JSON')
      .addHelpText('after', renderExamples('toolgate outcomes list', 'toolgate outcomes list --json'))
      .action(async (options: { url: string; json?: boolean }) => {
        const { listOutcomes } = await import('../outcomes.ts');
        await listOutcomes(options);
      });
    outcomes
      .command('settle')
      .description('say what became of a call, after a look at its backend: exit 0 done, 1 not (settled before)')
      .argument('<id>', 'the id of the call')
      .argument('<outcome>', 'ran or failed')
      .requiredOption('--reason <text>', 'how it is known')
      .option('--url <url>', 'the gateway', 'http://127.0.0.1:8080')
      .addHelpText(
        'after',
        renderExamples("toolgate outcomes settle ID ran --reason 'the charge is in the bank statement'"),
      )
      .action(async (id: string, outcome: string, options: { url: string; reason: string }) => {
        const { settleOutcome } = await import('../outcomes.ts');
        await settleOutcome(id, outcome, options);
      });
  },
};
