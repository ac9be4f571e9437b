import type { Command } from 'commander';
import type { CheckOptions } from '../check.ts';
import { type CliCommand, renderExamples } from '../command.ts';

/** `toolgate check`: asks about one call without a running gateway. */
export const CHECK_COMMAND: CliCommand = {
  name: 'check',
  register(program: Command): void {
    program
      .command('check')
      .description(
        'say what the check would answer to one call as the first of a new session; nothing is forwarded or kept: exit 0 allow, 1 confirm or refuse',
      )
      .option('-c, --config <file>', 'the configuration', 'gateway.yaml')
      .requiredOption('--tool <tool>', 'the tool: `shop/get_order`, or `get_order` where that is one tool alone')
      .option('--args <json>', 'its arguments', '{}')
      .option('--agent <agent>', 'who calls; may be left out where the configuration has one agent')
      .option('--origins <json>', 'where arguments come from: {"order_id":"typed"}')
      .option('--turn <text...>', "the person's own words")
      .option('--context <json>', 'facts by name: {"order_paid":true}')
      .option('--labels <json>', 'labels of the call and its arguments: {"call":["outside"]}')
      .option('--run <run>', 'the run that the call is of')
      .option('--as-agent', "ask with an agent's credential, which is believed for less than a host's")
      .option('--json', 'print the whole answer, qls-tool-check/1')
      .addHelpText(
        'after',
        renderExamples(
          'toolgate check --tool get_order --args \'{"order_id":"4411"}\' --agent desk',
          'toolgate check --tool refund_card --args \'{"order_id":"4411","amount":40}\' --agent billing --json',
        ),
      )
      .action(async (options: CheckOptions) => {
        const { runCheck } = await import('../check.ts');
        process.exitCode = await runCheck(options);
      });
  },
};
