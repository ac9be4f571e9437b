import type { Command } from 'commander';
import type { QueryOptions, VerifyCliOptions } from '../audit.ts';
import { type CliCommand, renderExamples } from '../command.ts';

/** `toolgate audit`: is the log as it was written, and what does it say. */
export const AUDIT_COMMAND: CliCommand = {
  name: 'audit',
  register(program: Command): void {
    const audit = program.command('audit').description('verify the audit log, and look things up in it');
    registerVerify(audit);
    registerQuery(audit);
  },
};

function registerVerify(audit: Command): void {
  audit
    .command('verify')
    .description('say whether a log is as the gateway wrote it: exit 0 intact, 1 tampered with, 2 cannot tell')
    .argument('<file...>', 'the files of a log, in any order; of several logs, each is verified by itself')
    .option('--public-key <key...>', "the gateway's public key, a PEM file or base64url; several after a rotation")
    .option('--anchor <anchor>', 'a line that was noted elsewhere: SEQ:HASH, or a JSON file with `seq` and `hash`')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      renderExamples(
        'toolgate audit verify logs/audit.jsonl --public-key keys/gateway.pub',
        'toolgate audit verify logs/audit*.jsonl* --public-key keys/gateway.pub',
        'toolgate audit verify logs/audit.jsonl* --public-key keys/gateway.pub --anchor 4711:kX0b...',
      ),
    )
    .action(async (files: string[], options: VerifyCliOptions) => {
      const { runVerify } = await import('../audit.ts');
      process.exitCode = await runVerify(files, options);
    });
}

function registerQuery(audit: Command): void {
  audit
    .command('query')
    .description('show the lines of a log that fit every filter that is given')
    .argument('<file...>', 'audit log files')
    .option('--event <event>', 'decision, outcome, undo, approval, config, key, fork, pass, problem')
    .option('--session <session>', 'of one session')
    .option('--tool <tool>', 'of one tool: `shop/get_order`, or `get_order` of any server')
    .option('--agent <agent>', 'of one agent')
    .option('--caller <caller>', 'of one credential')
    .option('--run <run>', 'of one run')
    .option('--decision <decision>', 'allow, confirm or refuse')
    .option('--reason <reason>', 'with this reason, or reason code, among its reasons')
    .option('--since <time>', 'from then on: 2026-11-29T10:00:00Z, or 15m, 2h, 3d ago')
    .option('--until <time>', 'before then')
    .option('--limit <count>', 'at most so many, the first ones')
    .option('--json', 'print the lines as they stand in the log')
    .addHelpText(
      'after',
      renderExamples(
        'toolgate audit query logs/audit.jsonl --session chat-17',
        'toolgate audit query logs/audit.jsonl* --decision refuse --since 2h --json',
      ),
    )
    .action(async (files: string[], options: QueryOptions) => {
      const { runQuery } = await import('../audit.ts');
      await runQuery(files, options);
    });
}
