import type { Command } from 'commander';
import { type CliCommand, renderExamples } from '../command.ts';
import type { RulesCliOptions } from '../rules.ts';

const STRICT = 'a Colang 1.0 message without a text is an error, and the end after a question a refusal';

/** Collects an option that is given several times. A file behind a fact must not be taken for another one. */
function another(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** `toolgate rules`: what a rulebook comes to, without a gateway. */
export const RULES_COMMAND: CliCommand = {
  name: 'rules',
  register(program: Command): void {
    const rules = program.command('rules').description('compile a rulebook, and explain what it says of a call');
    rules
      .command('compile')
      .description(
        'compile rulebook files, tell every problem, and list the tools that they govern: exit 1 with errors',
      )
      .argument('<file...>', 'rulebook files or folders')
      .option('-c, --config <file>', 'a configuration, whose tools the names in the rulebook are compared with')
      .option('--strict', STRICT)
      .option('--json', 'print JSON, the compiled record too')
      .addHelpText(
        'after',
        renderExamples('toolgate rules compile policy.co', 'toolgate rules compile rules/ -c gateway.yaml'),
      )
      .action(async (files: string[], options: RulesCliOptions) => {
        const { compileRules } = await import('../rules.ts');
        await compileRules(files, options);
      });
    rules
      .command('explain')
      .description('say what a rulebook decides of one call, by which flow and lines, and why')
      .argument('<file...>', 'rulebook files or folders')
      .requiredOption('--tool <tool>', 'the tool that is called')
      .option('--fact <fact>', 'a fact that holds: NAME, NAME=true or NAME=false; once for each', another)
      .option('--args <json>', 'the arguments of the call', '{}')
      .option('-c, --config <file>', 'a configuration, whose tools the names in the rulebook are compared with')
      .option('--strict', STRICT)
      .option('--json', 'print JSON')
      .addHelpText(
        'after',
        renderExamples(
          'toolgate rules explain policy.co --tool refund_card --fact order_paid --args \'{"amount":40}\'',
        ),
      )
      .action(async (files: string[], options: RulesCliOptions & { tool: string; args: string }) => {
        const { explainRules } = await import('../rules.ts');
        await explainRules(files, options);
      });
  },
};
