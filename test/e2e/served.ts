import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { childEnv } from '../child-env.ts';
import { programFile } from '../programs.ts';

const MAIN = programFile('gateway/cli/main.ts');

/** `toolgate serve` in a process of its own. */
export interface Served {
  readonly process: ChildProcess;
  readonly url: string;
  readonly folder: string;
  /** What stands in its log so far. */
  log(): string;
  /** Ends it by a signal; resolves with its exit code, `null` where the signal killed it. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** Starts it, with the store and the audit log in folders of their own below `folder`. */
export async function serve(config: object, folder?: string): Promise<Served> {
  const own = folder ?? (await mkdtemp(join(tmpdir(), 'toolgate-served-')));
  const file = join(own, 'gateway.yaml');
  const places = {
    listen: '127.0.0.1:0',
    keys: { signing: './gateway.pem' },
    store: './store/toolgate.db',
    audit: { file: './logs/audit.jsonl' },
  };
  await writeFile(file, stringify({ ...places, ...config }, { aliasDuplicateObjects: false }));
  const child = spawn(process.execPath, [MAIN, 'serve', '-c', file], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: childEnv(),
  });
  let log = '';
  let out = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    log += chunk.toString();
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      out += chunk.toString();
      const found = /listens on (\S+)/.exec(out)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once('exit', (code) => reject(new Error(`serve ended with ${code}: ${log}`)));
  });
  const exited = once(child, 'exit') as Promise<[number | null]>;
  return {
    process: child,
    url,
    folder: own,
    log: () => log,
    end: async (signal) => {
      child.kill(signal);
      const [code] = await exited;
      return code;
    },
  };
}

/** Makes files of the process that grow beyond `bytes` fail, as on a full disk; `unlimited` gives the room back. */
export function limitFiles(served: Served, bytes: number | 'unlimited'): void {
  execFileSync('prlimit', ['--pid', String(served.process.pid), `--fsize=${bytes}:unlimited`]);
}

export function canLimitFiles(): boolean {
  try {
    execFileSync('prlimit', ['--version']);
    return true;
  } catch {
    return false;
  }
}
