import type { RulebookRecord } from '../../policy/rulebook/record.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { buildCatalogue } from '../catalogue/build.ts';
import { loadGateway } from '../catalogue/load-gateway.ts';
import { type InUse, reload } from '../catalogue/reload.ts';
import type { ToolProvider } from '../catalogue/tool-source.ts';
import { hasErrors, type Problem, sortProblems } from '../config/problem.ts';
import type { Environment } from '../config/substitute.ts';
import { catalogueDeps } from '../load/catalogue-deps.ts';
import { type Licence, loadLicence } from '../load/licence.ts';
import { loadRulebook } from '../load/rulebook.ts';

/** Thrown where a config cannot be taken; `problems` say where and why. */
export class ConfigRefused extends Error {
  readonly code = 'config_refused';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super('the configuration has faults');
    this.name = 'ConfigRefused';
    this.problems = problems;
  }
}

/** A configuration with its catalogue and its rulebook, and what there is to tell of them. */
export interface WholeConfig extends InUse {
  readonly rulebook: RulebookRecord | undefined;
  /** The files that the rulebook was read from, imported ones too. */
  readonly rulebookFiles: readonly string[];
  readonly licence: Licence | undefined;
  readonly warnings: readonly Problem[];
}

/** Reads everything that a config file leads to. Throws `ConfigRefused` with every fault. */
export async function readWhole(file: string, env: Environment, mcp: ToolProvider): Promise<WholeConfig> {
  const { loaded, problems } = await loadGateway(file, { env }, catalogueDeps({ mcp }));
  return withRulebook(loaded, problems);
}

/** As `readWhole`, for a process that runs: what only a restart can change is a fault, too. */
export async function rereadWhole(current: InUse, env: Environment, mcp: ToolProvider): Promise<WholeConfig> {
  const { next, problems } = await reload(current, { env }, catalogueDeps({ current: current.built, mcp }));
  return withRulebook(next, problems);
}

/**
 * The configuration in use with a catalogue made anew, since an MCP server lists other tools than before. The files are
 * not read again: what a server says is no reason to take over what somebody is just writing. Throws `ConfigRefused`.
 */
export async function relistWhole({ config, built: current }: InUse, mcp: ToolProvider): Promise<WholeConfig> {
  const built = await buildCatalogue(config, catalogueDeps({ current, mcp }));
  return withRulebook({ config, built }, built.problems);
}

async function withRulebook(inUse: InUse | undefined, problems: readonly Problem[]): Promise<WholeConfig> {
  if (inUse === undefined) throw new ConfigRefused(problems);
  const rulebook = await loadRulebook(inUse.config, inUse.built);
  const licence = await loadLicence(nodeCrypto, inUse.config);
  const all = sortProblems([...problems, ...rulebook.problems, ...licence.problems]);
  // A rulebook that is named and came to nothing must never mean that nothing is ruled.
  const isLost = inUse.config.rulebook.length > 0 && rulebook.record === undefined;
  if (hasErrors(all) || isLost) throw new ConfigRefused(all);
  const { record, files } = rulebook;
  return { ...inUse, rulebook: record, rulebookFiles: files, licence: licence.licence, warnings: all };
}

/** Every file and folder that a config was read from: what `--watch` watches. */
export function filesOf({ config, rulebookFiles }: WholeConfig): readonly string[] {
  return [...new Set([config.file, ...config.files, ...config.rulebook, ...rulebookFiles])];
}
