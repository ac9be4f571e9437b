import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { stringify } from 'yaml';
import { childEnv } from '../child-env.ts';
import { programFile } from '../programs.ts';

/** `toolgate serve` as a process of its own. */
export interface Served {
  readonly url: string;
  readonly configFile: string;
  readonly child: ChildProcess;
  /** All that it wrote so far, both streams. */
  said(): string;
  /** Waits until it has written something like `pattern`; fails where it ends before. */
  until(pattern: RegExp): Promise<void>;
  /** Sends SIGTERM and resolves with the exit code. */
  stop(): Promise<number | null>;
}

export interface ServeOptions {
  readonly folder: string;
  /** Names the config file, and so the process. */
  readonly name: string;
  /** The config, or the file that it is in. */
  readonly config: object | string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The program; the sources' own by default. */
  readonly main?: string;
}

const MAIN = programFile('gateway/cli/main.ts');
const START_MS = 180_000;

/** A test that fails half-way leaves none behind that would keep its own process from ending. */
const RUNNING = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of RUNNING) child.kill('SIGKILL');
});

/** Starts a gateway process and waits until it takes calls. */
export async function serveGateway(options: ServeOptions): Promise<Served> {
  const { folder, name, config, args = [], env = {}, cwd, main = MAIN } = options;
  const configFile = typeof config === 'string' ? config : join(folder, `${name}.yaml`);
  if (typeof config !== 'string') await writeFile(configFile, stringify(config, { aliasDuplicateObjects: false }));
  const child = spawn(process.execPath, [main, 'serve', '-c', configFile, '--log-level', 'warn', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: childEnv(env),
    ...(cwd === undefined ? {} : { cwd }),
  });
  RUNNING.add(child);
  child.once('exit', () => RUNNING.delete(child));
  child.unref();
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (text += String(chunk)));
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  const until = async (pattern: RegExp): Promise<void> => {
    for (const before = Date.now(); !pattern.test(text); await pause(20)) {
      if (child.exitCode !== null || Date.now() - before > START_MS) {
        child.kill('SIGKILL');
        throw new Error(`\`${name}\` did not say ${pattern}:\n${text}`);
      }
    }
  };
  await until(/toolgate listens on \S+/);
  return {
    url: /toolgate listens on (\S+)/.exec(text)?.[1] ?? '',
    configFile,
    child,
    said: () => text,
    until,
    stop: () => {
      if (child.exitCode === null) child.kill('SIGTERM');
      return ended;
    },
  };
}
