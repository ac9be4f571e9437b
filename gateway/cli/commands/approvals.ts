import type { Command } from 'commander';
import { type CliCommand, renderExamples } from '../command.ts';

/** `toolgate approvals`: an approver's side of a running gateway. */
export const APPROVALS_COMMAND: CliCommand = {
  name: 'approvals',
  register(program: Command): void {
    const approvals = program
      .command('approvals')
      .description("decide held calls of a running gateway; an approver's key is read from TOOLGATE_APPROVER_KEY");
    approvals
      .command('list')
      .description('show what waits for a person: exit 0')
      .option('--url <url>', 'the gateway', 'http://127.0.0.1:8080')
      .option('--state <state>', 'pending, approved, denied or spent', 'pending')
      .option('--json', 'print JSON')
      .addHelpText(
        'after',
        renderExamples('toolgate approvals list', 'toolgate approvals list --url https://gateway.internal --json'),
      )
      .action(async (options: { url: string; state: string; json?: boolean }) => {
        const { listApprovals } = await import('../approvals.ts');
        await listApprovals(options);
      });
    for (const [name, description] of [
      ['approve', 'let one held call run, once: exit 0 done, 1 not (expired, or decided before)'],
      ['deny', 'let one held call never run: exit 0 done, 1 not (expired, or decided before)'],
    ] as const) {
      approvals
        .command(name)
        .description(description)
        .argument('<id>', 'the id of the confirmation')
        .option('--url <url>', 'the gateway', 'http://127.0.0.1:8080')
        .option('--note <text>', 'why; kept beside the decision')
        .addHelpText(
          'after',
          renderExamples(`toolgate approvals ${name} 3q2-7wAAAAAAAAAAAAAAAA --note 'asked the customer'`),
        )
        .action(async (id: string, options: { url: string; note?: string }) => {
          const { decideApproval } = await import('../approvals.ts');
          await decideApproval(id, name, options);
        });
    }
  },
};
