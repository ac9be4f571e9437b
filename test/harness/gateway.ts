import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { renderProblems } from '../../gateway/config/problem.ts';
import { createLog, type Log } from '../../gateway/log.ts';
import { type RunningGateway, runGateway } from '../../gateway/serve/run-gateway.ts';
import { ConfigRefused } from '../../gateway/serve/whole-config.ts';

/** A real gateway in this process, in a folder of its own. */
export interface TestGateway extends RunningGateway {
  readonly folder: string;
  readonly configFile: string;
  /** Sends one request; the body is JSON. */
  request(method: string, path: string, options?: RequestOptions): Promise<TestAnswer>;
  /** Writes another config and reloads. */
  reconfigure(config: object): ReturnType<RunningGateway['reload']>;
}

export interface TestOptions {
  /** A folder that stays when the gateway is closed; else it has one of its own. */
  readonly folder?: string;
  /** As `RunOptions` has it. */
  readonly leaseMs?: number;
  /** Files beside the config, by name. */
  readonly files?: Readonly<Record<string, string>>;
  /** Nothing is logged by default. */
  readonly log?: Log;
  /** How often a comment keeps an idle MCP stream open, in milliseconds. */
  readonly mcpKeepAliveMs?: number;
}

interface RequestOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** An API key. */
  readonly key?: string;
}

export interface TestAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; `undefined` where it is none. */
  readonly json: unknown;
}

/** Starts a gateway with a config (what it leaves out is put in: a free port, keys, store and log in its own folder). */
export async function startTestGateway(config: object, options: TestOptions = {}): Promise<TestGateway> {
  const { folder, files = {}, leaseMs, mcpKeepAliveMs } = options;
  const own = folder ?? (await mkdtemp(join(tmpdir(), 'toolgate-')));
  for (const [name, text] of Object.entries(files)) await writeFile(join(own, name), text);
  const configFile = join(own, 'gateway.yaml');
  await writeConfig(configFile, config);
  const { log = createLog({ level: 'silent' }) } = options;
  try {
    const running = await runGateway({
      configFile,
      env: process.env,
      log,
      ...(leaseMs === undefined ? {} : { leaseMs }),
      ...(mcpKeepAliveMs === undefined ? {} : { mcpKeepAliveMs }),
    });
    return {
      ...running,
      folder: own,
      configFile,
      request: (method, path, options) => send(running.url, method, path, options),
      reconfigure: async (next) => {
        await writeConfig(configFile, next);
        return running.reload();
      },
      close: async () => {
        await running.close();
        if (folder === undefined) await rm(own, { recursive: true, force: true });
      },
    };
  } catch (error) {
    if (error instanceof ConfigRefused) {
      throw new Error(renderProblems(error.problems.filter(({ severity }) => severity === 'error')));
    }
    throw error;
  }
}

async function writeConfig(file: string, config: object): Promise<void> {
  const whole = {
    listen: '127.0.0.1:0',
    keys: { signing: './gateway.pem' },
    store: './toolgate.db',
    audit: { file: './audit.jsonl' },
    ...config,
  };
  await writeFile(file, stringify(whole, { aliasDuplicateObjects: false }));
}

async function send(url: string, method: string, path: string, options: RequestOptions = {}): Promise<TestAnswer> {
  const { body, headers = {}, key } = options;
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: parse(text) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
