import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Client } from '@modelcontextprotocol/client';
import { newCredential } from '../../gateway/config/credential.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { checkOf, connectClient, textOf } from './clients.ts';

const MODULES = fileURLToPath(new URL('../../node_modules/@modelcontextprotocol/', import.meta.url));
const INSPECTOR = join(MODULES, 'inspector/clients/launcher/build/index.js');
const server = (name: string): string[] => [process.execPath, join(MODULES, `server-${name}/dist/index.js`)];

const host = newCredential();
const agent = newCredential();

let folder: string;
let gateway: TestGateway;
let everything: { readonly url: string; close(): void };

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'toolgate-files-'));
  await mkdir(join(folder, 'inside'));
  await writeFile(join(folder, 'inside/note.txt'), 'a note');
  await writeFile(join(folder, 'secret.txt'), 'not for you');
  everything = await startEverything();
  const inside = join(folder, 'inside');
  gateway = await startTestGateway({
    agents: { desk: { credentials: [agent.digest, { key: host.digest, host: true, name: 'app' }] } },
    routes: [
      {
        name: 'files',
        mcp: { command: [...server('filesystem'), inside] },
        agents: ['desk'],
        tools: [
          { name: 'read_text_file', writes: false, sends_out: true, reads_outside: false },
          { name: 'list_directory', writes: false, sends_out: true, reads_outside: false },
          { name: 'write_file', sends_out: true },
          { name: 'move_file', not_after: ['read_text_file'], sends_out: true },
        ],
      },
      {
        name: 'memory',
        mcp: { command: server('memory'), env: { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') } },
        agents: ['desk'],
        tools: [{ name: 'read_graph', writes: false, reads_outside: false }],
      },
      {
        name: 'thinking',
        mcp: { command: server('sequential-thinking') },
        agents: ['desk'],
        tools: [{ name: '*', writes: false }],
      },
      {
        name: 'everything',
        mcp: everything.url,
        agents: ['desk'],
        annotations: 'trusted',
        tools: [{ name: '*', writes: false, sends_out: true }],
      },
    ],
  });
});

after(async () => {
  await gateway.close();
  everything.close();
  await rm(folder, { recursive: true, force: true });
});

/** The reference server of every feature, over HTTP. */
async function startEverything(): Promise<typeof everything> {
  const port = await freePort();
  const [program = '', script = ''] = server('everything');
  const child = spawn(program, [script, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (/listening|port/i.test(text)) resolve();
    });
  });
  return { url: `http://127.0.0.1:${port}/mcp`, close: () => child.kill() };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

async function withClient<T>(
  path: string,
  options: Parameters<typeof connectClient>[1],
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await connectClient(`${gateway.url}${path}`, options);
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

test('four servers of npm list their tools on one endpoint, each under its operator’s name', async () => {
  await withClient('/mcp', { key: agent.key }, async (client) => {
    const names = (await client.listTools()).tools.map(({ name }) => name);
    for (const name of [
      'files__read_text_file',
      'memory__create_entities',
      'thinking__sequentialthinking',
      'everything__echo',
    ]) {
      assert.ok(names.includes(name), `${name} is not among ${names.join(', ')}`);
    }
    assert.equal(
      textOf(await client.callTool({ name: 'everything__echo', arguments: { message: 'hello' } })),
      'Echo: hello',
    );
    const thought = { thought: 'first', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 };
    assert.match(
      textOf(await client.callTool({ name: 'thinking__sequentialthinking', arguments: thought })),
      /"thoughtNumber": 1/,
    );
  });
});

test('a file server reads inside of its folder and is not made to leave it by an argument', async () => {
  await withClient('/mcp/files', { key: agent.key }, async (client) => {
    const read = (path: string) => client.callTool({ name: 'read_text_file', arguments: { path } });
    assert.equal(textOf(await read(join(folder, 'inside/note.txt'))), 'a note');
    for (const path of [
      join(folder, 'secret.txt'),
      join(folder, 'inside/../secret.txt'),
      '../secret.txt',
      `${folder}/inside/%2e%2e/secret.txt`,
    ]) {
      const result = await read(path);
      assert.equal(result.isError, true, path);
      assert.doesNotMatch(textOf(result), /not for you/);
    }
  });
});

test('a write that a rule forbids is refused in the model’s words, and one of an agent waits for an approver', async () => {
  await withClient('/mcp/files', { key: agent.key }, async (client) => {
    await client.callTool({ name: 'read_text_file', arguments: { path: join(folder, 'inside/note.txt') } });
    const move = { source: join(folder, 'inside/note.txt'), destination: join(folder, 'inside/moved.txt') };
    const refused = await client.callTool({ name: 'move_file', arguments: move });
    assert.equal(refused.isError, true);
    assert.equal(checkOf(refused).reason, 'order_rule');
    const asked = await client.callTool({
      name: 'write_file',
      arguments: { path: join(folder, 'inside/new.txt'), content: 'x' },
    });
    assert.equal(asked.isError, true);
    assert.match(textOf(asked), /A person decides at http.*make the same call again/s);
    await assert.rejects(readFile(join(folder, 'inside/new.txt')));
  });
});

for (const era of ['legacy', 'modern'] as const) {
  test(`a host’s person is asked in the client’s own way (${era} era): yes lets the write pass, no does not`, async () => {
    const path = join(folder, `inside/${era}.txt`);
    let answer: 'accept' | 'decline' = 'decline';
    const asked: string[] = [];
    const options = {
      key: host.key,
      era,
      capabilities: { elicitation: { form: {} } },
      prepare: (client: Client) =>
        client.setRequestHandler('elicitation/create', ({ params }) => {
          asked.push(params.message);
          return answer === 'accept' ? { action: 'accept', content: { approve: true } } : { action: 'decline' };
        }),
    };
    await withClient('/mcp/files', options, async (client) => {
      const write = () => client.callTool({ name: 'write_file', arguments: { path, content: era } });
      const no = await write();
      assert.equal(no.isError, true);
      assert.match(textOf(no), /did not approve/);
      await assert.rejects(readFile(path));
      answer = 'accept';
      const yes = await write();
      assert.notEqual(yes.isError, true, textOf(yes));
      assert.equal(await readFile(path, 'utf8'), era);
      assert.equal(asked.length, 2);
      assert.match(asked[1] ?? '', /files\/write_file.*content/s);
    });
  });
}

test('an agent’s client that answers for itself changes nothing', async () => {
  let asked = 0;
  const options = {
    key: agent.key,
    capabilities: { elicitation: { form: {} } },
    prepare: (client: Client) =>
      client.setRequestHandler('elicitation/create', () => {
        asked += 1;
        return { action: 'accept', content: { approve: true } };
      }),
  };
  await withClient('/mcp/memory', options, async (client) => {
    const entities = [{ name: 'a', entityType: 'b', observations: [] }];
    const result = await client.callTool({ name: 'create_entities', arguments: { entities } });
    assert.equal(result.isError, true);
    assert.equal(asked, 0);
    assert.match(textOf(await client.callTool({ name: 'read_graph', arguments: {} })), /"entities": \[\]/);
  });
});

/** Runs the Inspector's command line; resolves with what it printed. */
function inspect(...args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const header = `Authorization: Bearer ${agent.key}`;
    const all = ['--cli', `${gateway.url}/mcp/everything`, '--transport', 'http', '--header', header, ...args];
    const child = spawn(process.execPath, [INSPECTOR, ...all], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, MCP_CATALOG_PATH: join(folder, 'catalog.json') },
    });
    let out = '';
    let errors = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    child
      .once('error', reject)
      .once('close', (code) => (code === 0 ? resolve(out) : reject(new Error(`${out}${errors}`))));
  });
}

test('the Inspector’s command line lists and calls through the gateway', async () => {
  const [list, called] = await Promise.all([
    inspect('--method', 'tools/list'),
    inspect('--method', 'tools/call', '--tool-name', 'echo', '--tool-arg', 'message=hello'),
  ]);
  assert.match(list, /"name": "echo"/);
  assert.match(called, /Echo: hello/);
});
