import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Config } from './config.ts';
import { checkNotYet, NOT_YET } from './not-yet.ts';
import { hasErrors, type Problem, ProblemLog } from './problem.ts';
import { readConfig } from './read-config.ts';
import { Reading } from './reading.ts';
import { isRawConfig } from './schema.ts';
import { checkShape } from './schema-faults.ts';
import { type Environment, substituteEnvironment } from './substitute.ts';
import { parseYaml } from './yaml-source.ts';

export interface LoadOptions {
  /** What `${NAME}` reads. */
  readonly env: Environment;
  /** Words that are refused since nothing enforces them yet. Default: `NOT_YET`. */
  readonly notYet?: Readonly<Record<string, string>>;
}

/** What loading gives: a configuration where there is no error, and everything that there is to tell. */
export interface LoadedConfig {
  readonly config?: Config;
  readonly problems: readonly Problem[];
}

/** A configuration that may have faults, as far as it could be read: for looking at everything in it at once. */
export interface DraftConfig {
  readonly draft?: Config;
  readonly problems: readonly Problem[];
}

/**
 * Reads, validates and types the configuration in the file `path`. Every fault that can be told without the tools'
 * own definitions is in `problems`, at its place in the file; `loadGateway` tells those too. Never throws for what a
 * file says, nor for a file that is not there.
 */
export async function loadConfig(path: string, options: LoadOptions): Promise<LoadedConfig> {
  const { draft, problems } = await draftConfig(path, options);
  return draft === undefined || hasErrors(problems) ? { problems } : { config: draft, problems };
}

/** As `loadConfig`, but hands out what could be read beside the faults. Such a draft is looked at, never run. */
export async function draftConfig(path: string, options: LoadOptions): Promise<DraftConfig> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    const message = `the configuration file cannot be read (${why})`;
    return { problems: [{ severity: 'error', code: 'missing_file', message, file: path, line: 1, column: 1 }] };
  }
  return draftConfigText(path, text, options);
}

/** As `draftConfig`, of a text that stands for the file `path`. */
export function draftConfigText(path: string, text: string, options: LoadOptions): DraftConfig {
  const source = parseYaml(path, text);
  const log = new ProblemLog(source.positionOf);
  log.add(source.problems);
  if (source.value === undefined) return { problems: log.problems };
  const value = substituteEnvironment(source.value, options.env, log);
  checkNotYet(value, options.notYet ?? NOT_YET, log);
  const rest = checkShape(value, log);
  if (rest === undefined || !isRawConfig(rest)) return { problems: log.problems };
  const file = resolve(path);
  const draft = readConfig(rest, file, source.positionOf, new Reading(file, log));
  return { draft, problems: log.problems };
}
