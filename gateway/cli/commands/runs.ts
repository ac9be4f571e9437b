import type { Command } from 'commander';
import { type CliCommand, renderExamples } from '../command.ts';
import type { RunOptions } from '../runs.ts';

const URL_OPTION = ['--url <url>', 'the gateway', 'http://127.0.0.1:8080'] as const;
const CALLER_OPTION = ['--caller <name>', 'the credential whose run it is'] as const;

/** `toolgate runs`: what is undone together, and what of it waits for a person. */
export const RUNS_COMMAND: CliCommand = {
  name: 'runs',
  register(program: Command): void {
    const runs = program
      .command('runs')
      .description("runs of a running gateway; an approver's key is read from TOOLGATE_APPROVER_KEY");
    runs
      .command('list')
      .description('show the runs of a state: exit 0')
      .option(...URL_OPTION)
      .option('--state <state>', 'open, failed, undoing, compensated, needs_person or ended', 'needs_person')
      .option('--json', 'print JSON')
      .addHelpText('after', renderExamples('toolgate runs list', 'toolgate runs list --state undoing --json'))
      .action(async (options: { url: string; state: string; json?: boolean }) => {
        const { listRuns } = await import('../runs.ts');
        await listRuns(options);
      });
    runs
      .command('show')
      .description('show how a run stands, step by step: exit 0, 1 where there is none')
      .argument('<run>', 'the name of the run')
      .requiredOption(...CALLER_OPTION)
      .option(...URL_OPTION)
      .option('--json', 'print JSON')
      .addHelpText('after', renderExamples('toolgate runs show r-9 --caller shop-app'))
      .action(async (run: string, options: RunOptions) => {
        const { showRun } = await import('../runs.ts');
        await showRun(run, options);
      });
    for (const [name, description] of [
      ['undo', 'fail a run and undo what it wrote, last step first: exit 0, 1 where it cannot be'],
      ['end', 'end a run, of which then nothing is undone: exit 0, 1 where it has failed'],
    ] as const) {
      runs
        .command(name)
        .description(description)
        .argument('<run>', 'the name of the run')
        .requiredOption(...CALLER_OPTION)
        .option(...URL_OPTION)
        .option('--json', 'print JSON')
        .addHelpText('after', renderExamples(`toolgate runs ${name} r-9 --caller shop-app`))
        .action(async (run: string, options: RunOptions) => {
          const { moveRun } = await import('../runs.ts');
          await moveRun(run, name, options);
        });
    }
    registerSettle(runs);
  },
};

function registerSettle(runs: Command): void {
  runs
    .command('settle')
    .description(
      'say what becomes of an undo that needs a person; the earlier ones then go on: exit 0, 1 where none does',
    )
    .argument('<run>', 'the name of the run')
    .requiredOption(...CALLER_OPTION)
    .requiredOption('--step <step>', 'the step whose undo it is')
    .requiredOption('--as <what>', 'undone (by hand), left (it stays done), or retry')
    .requiredOption('--reason <text>', 'why')
    .option(...URL_OPTION)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      renderExamples("toolgate runs settle r-9 --caller shop-app --step 4 --as undone --reason 'refunded by hand'"),
    )
    .action(async (run: string, options: RunOptions & { step: string; as: string; reason: string }) => {
      const { settleUndo } = await import('../runs.ts');
      await settleUndo(run, options);
    });
}
