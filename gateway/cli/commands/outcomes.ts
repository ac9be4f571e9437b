import type { Command } from 'commander';
import { type CliCommand, renderExamples } from '../command.ts';

const URL_OPTION = ['--url <url>', 'the gateway', 'http://127.0.0.1:8080'] as const;

/** `toolgate outcomes`: calls of which nobody knows what became, and what an approver says of them. */
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
      .description('show the calls of a state, oldest first: exit 0')
      .option(...URL_OPTION)
      .option('--state <state>', 'outcome_unknown, claimed, sending, failed or ran', 'outcome_unknown')
      .option('--json', 'print JSON')
      .addHelpText('after', renderExamples('toolgate outcomes list', 'toolgate outcomes list --json'))
      .action(async (options: { url: string; state: string; json?: boolean }) => {
        const { listOutcomes } = await import('../outcomes.ts');
        await listOutcomes(options);
      });
    outcomes
      .command('settle')
      .description('say what became of a call: exit 0 done, 1 not (there is none, or it is known by now)')
      .argument('<id>', 'the id of the call')
      .argument('<outcome>', 'ran or failed')
      .requiredOption('--reason <text>', 'how it is known; kept in the audit log')
      .option(...URL_OPTION)
      .addHelpText('after', renderExamples("toolgate outcomes settle 3q2-7w... ran --reason 'it is in the ledger'"))
      .action(async (id: string, outcome: string, options: { url: string; reason: string }) => {
        const { settleOutcome } = await import('../outcomes.ts');
        await settleOutcome(id, { ...options, outcome });
      });
  },
};
