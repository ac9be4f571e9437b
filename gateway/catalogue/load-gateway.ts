import type { Config } from '../config/config.ts';
import { type DraftConfig, draftConfig, type LoadOptions } from '../config/load.ts';
import { hasErrors, type Problem, sortProblems } from '../config/problem.ts';
import { type BuiltCatalogue, buildCatalogue, type CatalogueDeps } from './build.ts';

/** A configuration with its catalogue; both are there where no problem is an error. */
export interface LoadedGateway {
  readonly loaded?: { readonly config: Config; readonly built: BuiltCatalogue };
  readonly problems: readonly Problem[];
}

/**
 * Reads the configuration in `path` and makes its catalogue. Every fault is told at once: those of the file, and those
 * that only the tools' definitions bring up, also where the file has faults of its own.
 */
export async function loadGateway(path: string, options: LoadOptions, deps: CatalogueDeps): Promise<LoadedGateway> {
  return finishDraft(await draftConfig(path, options), deps);
}

/** As `loadGateway`, of a draft. */
export async function finishDraft({ draft, problems }: DraftConfig, deps: CatalogueDeps): Promise<LoadedGateway> {
  if (draft === undefined) return { problems };
  const built = await buildCatalogue(draft, deps);
  const all = sortProblems([...problems, ...built.problems]);
  return hasErrors(all) ? { problems: all } : { loaded: { config: draft, built }, problems: all };
}
