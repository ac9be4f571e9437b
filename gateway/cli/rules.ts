import { type CommandResult, type RulesOptions, runRulesCompile, runRulesExplain } from '../rulebook/commands.ts';
import { parseObject } from './arguments.ts';
import { print } from './output.ts';
import { requireWhole } from './require-config.ts';

export interface RulesCliOptions {
  readonly config?: string;
  readonly strict?: boolean;
  readonly json?: boolean;
  readonly fact?: readonly string[];
}

/** `toolgate rules compile`. Sets the exit code. */
export async function compileRules(files: readonly string[], options: RulesCliOptions): Promise<void> {
  await finish(await runRulesCompile(await rulesOptions(files, options)));
}

/** `toolgate rules explain`. Sets the exit code. */
export async function explainRules(
  files: readonly string[],
  options: RulesCliOptions & { readonly tool: string; readonly args: string },
): Promise<void> {
  const shared = await rulesOptions(files, options);
  const args = parseObject('--args', options.args);
  const { tool, fact } = options;
  await finish(
    await runRulesExplain({ ...shared, tool, arguments: args, ...(fact === undefined ? {} : { facts: fact }) }),
  );
}

async function rulesOptions(files: readonly string[], options: RulesCliOptions): Promise<RulesOptions> {
  const { config, json, strict } = options;
  const tools = config === undefined ? undefined : [...(await requireWhole(config)).built.catalogue.tools.keys()];
  return {
    files,
    base: process.cwd(),
    json: json === true,
    strict: strict === true,
    ...(tools === undefined ? {} : { tools }),
  };
}

async function finish({ text, exitCode }: CommandResult): Promise<void> {
  await print(text);
  process.exitCode = exitCode;
}
