import type { LoadOptions } from '../config/load.ts';
import { hasErrors, renderProblems, sortProblems } from '../config/problem.ts';
import { loadRulebook } from '../load/rulebook.ts';
import type { CatalogueDeps } from './build.ts';
import { loadGateway } from './load-gateway.ts';

/** What a command prints and how it ends. */
export interface CommandResult {
  readonly text: string;
  readonly exitCode: 0 | 1;
}

/** `toolgate validate FILE`: every fault and warning at its place, then one line that sums up. 1 where there is an error. */
export async function validateConfig(
  path: string,
  options: LoadOptions & { readonly json?: boolean },
  deps: CatalogueDeps,
): Promise<CommandResult> {
  const { loaded, problems: own } = await loadGateway(path, options, deps);
  const rulebook = loaded === undefined ? [] : (await loadRulebook(loaded.config, loaded.built)).problems;
  const problems = sortProblems([...own, ...rulebook]);
  const exitCode = hasErrors(problems) ? 1 : 0;
  if (options.json) return { text: `${JSON.stringify({ valid: exitCode === 0, problems }, null, 2)}\n`, exitCode };
  const errors = problems.filter((problem) => problem.severity === 'error').length;
  const warnings = problems.length - errors;
  const counts = `${counted(errors, 'error')}, ${counted(warnings, 'warning')}`;
  const summary =
    loaded === undefined || exitCode === 1
      ? `${path}: not valid: ${counts}`
      : `${path}: valid: ${counted(loaded.built.catalogue.tools.size, 'tool')} on ${counted(loaded.built.routes.length, 'route')}, ${counted(warnings, 'warning')}`;
  return { text: `${renderProblems(problems)}${summary}\n`, exitCode };
}

function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}
