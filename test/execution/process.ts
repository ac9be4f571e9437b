import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { childEnv } from '../child-env.ts';
import { programFile } from '../programs.ts';

const PROGRAM = programFile('test/execution/gateway-process.ts');

/** A gateway in a process of its own. */
export interface GatewayProcess {
  readonly url: string;
  readonly child: ChildProcess;
  /** Resolves with how it ended. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null; readonly errors: string }>;
  /** Resolves when it will kill itself at this point. */
  arm(fault: string): Promise<void>;
  kill(): Promise<void>;
  stop(): Promise<void>;
}

/** A folder with a config, of which gateways are started one after the other. */
export interface GatewayFolder {
  readonly folder: string;
  /** Starts one; `fault` is where it ends itself. Throws with what it said where it does not start. */
  start(options?: {
    readonly fault?: string;
    readonly leaseMs?: number;
    readonly env?: Readonly<Record<string, string>>;
  }): Promise<GatewayProcess>;
  remove(): Promise<void>;
}

/** Makes a folder for gateways with a config; what it leaves out is put in. */
export async function makeFolder(config: object): Promise<GatewayFolder> {
  const folder = await mkdtemp(join(tmpdir(), 'toolgate-'));
  const file = join(folder, 'gateway.yaml');
  const whole = {
    listen: '127.0.0.1:0',
    keys: { signing: './gateway.pem' },
    store: './toolgate.db',
    audit: { file: './audit.jsonl' },
    ...config,
  };
  await writeFile(file, stringify(whole, { aliasDuplicateObjects: false }));
  const started: GatewayProcess[] = [];
  return {
    folder,
    start: async (options = {}) => {
      const process = await start(file, options);
      started.push(process);
      return process;
    },
    remove: async () => {
      for (const process of started) await process.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function start(
  file: string,
  {
    fault,
    leaseMs = 30_000,
    env = {},
  }: { readonly fault?: string; readonly leaseMs?: number; readonly env?: Readonly<Record<string, string>> },
): Promise<GatewayProcess> {
  const child = spawn(process.execPath, [PROGRAM, file, String(leaseMs)], {
    env: childEnv({ ...(fault === undefined ? {} : { TOOLGATE_FAULT: fault }), ...env }),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  // What it is told after it died is lost, and no fault of the test.
  child.stdin.on('error', () => undefined);
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, errors }));
  const url = await Promise.race([
    once(child.stdout.setEncoding('utf8'), 'data').then(([text]) => String(text).trim()),
    ended.then((end) => Promise.reject(new Error(`the gateway did not start: ${JSON.stringify(end)}`))),
  ]);
  return {
    url,
    child,
    ended,
    arm: async (text) => {
      const armed = once(child.stdout, 'data');
      child.stdin.write(`${text}\n`);
      await armed;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
