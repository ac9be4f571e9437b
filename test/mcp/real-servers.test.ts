import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Client } from '@modelcontextprotocol/client';
import { newCredential } from '../../gateway/config/credential.ts';
import { childEnv } from '../child-env.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { checkOf, connectClient, type SaidCheck, textOf } from './clients.ts';

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
  await writeFile(join(folder, 'inside/other.txt'), 'not for you either');
  await writeFile(join(folder, 'secret.txt'), 'not for you');
  await symlink(join(folder, 'secret.txt'), join(folder, 'inside/link.txt'));
  await symlink(folder, join(folder, 'inside/up'));
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
          {
            name: 'read_file',
            writes: false,
            sends_out: true,
            reads_outside: false,
            checks: [{ field: 'path', one_of: [join(inside, 'note.txt')] }],
          },
          { name: 'list_directory', writes: false, sends_out: true, reads_outside: false },
          { name: 'write_file', sends_out: true },
          {
            name: 'create_directory',
            sends_out: true,
            checks: [{ field: 'path', one_of: [join(inside, 'new')], because: 'there is one place for it' }],
          },
          { name: 'move_file', not_after: ['read_text_file'], sends_out: true },
        ],
      },
      {
        name: 'memory',
        mcp: { command: server('memory'), env: { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') } },
        agents: ['desk'],
        tools: [
          { name: 'read_graph', writes: false, reads_outside: false },
          { name: 'delete_entities', checks: [{ count: 'entityNames', at_most: 1 }] },
        ],
      },
      {
        name: 'thinking',
        mcp: { command: server('sequential-thinking') },
        agents: ['desk'],
        tools: [{ name: '*', writes: false, checks: [{ field: 'totalThoughts', at_most: 5 }] }],
      },
      {
        name: 'everything',
        mcp: everything.url,
        agents: ['desk'],
        annotations: 'trusted',
        tools: [
          { name: '*', writes: false, sends_out: true },
          { name: 'get-sum', writes: true, checks: [{ field: 'a', at_most: 10 }] },
        ],
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
    env: childEnv({ PORT: String(port) }),
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

/** Ways out of a folder that an argument could take: dots, names that lead elsewhere, forms that are decoded later. */
function waysOut(): readonly string[] {
  const inside = join(folder, 'inside');
  return [
    join(folder, 'secret.txt'),
    `${inside}/../secret.txt`,
    `${inside}/./../secret.txt`,
    `${inside}//..//secret.txt`,
    '../secret.txt',
    `${inside}/link.txt`,
    `${inside}/up/secret.txt`,
    `${inside}/%2e%2e/secret.txt`,
    `${inside}/..%2fsecret.txt`,
    `${inside}/%252e%252e/secret.txt`,
    `${inside}/..\\secret.txt`,
    `${inside}/\u2025/secret.txt`,
    `${inside}/note.txt\0/../../secret.txt`,
    `file://${folder}/secret.txt`,
    '~/secret.txt',
    '/etc/hostname',
  ];
}

test('a file server is not made to leave its folder by an argument', async () => {
  await withClient('/mcp/files', { key: agent.key }, async (client) => {
    const read = (path: string) => client.callTool({ name: 'read_text_file', arguments: { path } });
    assert.equal(textOf(await read(join(folder, 'inside/note.txt'))), 'a note');
    for (const path of waysOut()) {
      const result = await read(path);
      assert.equal(result.isError, true, path);
      assert.doesNotMatch(textOf(result), /not for you/);
    }
  });
});

test('a condition on the path keeps a file server to the one file, whatever else it would read', async () => {
  await withClient('/mcp/files', { key: agent.key }, async (client) => {
    const read = (path: string) => client.callTool({ name: 'read_file', arguments: { path } });
    const note = join(folder, 'inside/note.txt');
    assert.equal(textOf(await read(note)), 'a note');
    for (const path of [...waysOut(), join(folder, 'inside/other.txt'), `${note}/`, note.toUpperCase()]) {
      const result = await read(path);
      assert.equal(result.isError, true, path);
      assert.equal(checkOf(result).reason, 'condition_failed', path);
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

interface Inspected {
  readonly isError?: boolean;
  readonly tools?: readonly { readonly name: string }[];
  readonly _meta?: Readonly<Record<string, SaidCheck>>;
}

/** Runs the Inspector's command line against the endpoint over all servers; resolves with the result that it printed. */
function inspect(...args: readonly string[]): Promise<Inspected> {
  return new Promise((resolve, reject) => {
    const header = `Authorization: Bearer ${agent.key}`;
    const all = ['--cli', `${gateway.url}/mcp`, '--transport', 'http', '--header', header, ...args];
    const child = spawn(process.execPath, [INSPECTOR, ...all], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: childEnv({ MCP_CATALOG_PATH: join(folder, 'catalog.json') }),
    });
    let out = '';
    let errors = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    child.once('error', reject).once('close', () => {
      try {
        resolve(JSON.parse(out) as Inspected);
      } catch {
        reject(new Error(`the Inspector printed no result:\n${out}\n${errors}`));
      }
    });
  });
}

test('the Inspector’s command line lists the tools of all four servers', async () => {
  const names = (await inspect('--method', 'tools/list')).tools?.map(({ name }) => name) ?? [];
  for (const name of ['files__read_file', 'memory__read_graph', 'thinking__sequentialthinking', 'everything__echo'])
    assert.ok(names.includes(name), `${name} is not among ${names.join(', ')}`);
});

/** For each server a call that passes, with what its answer holds, and one that a rule refuses. */
const INSPECTED: readonly {
  readonly server: string;
  readonly passes: readonly [string, () => object];
  readonly says: RegExp;
  readonly refused: readonly [string, () => object];
}[] = [
  {
    server: 'files',
    passes: ['read_file', () => ({ path: join(folder, 'inside/note.txt') })],
    says: /a note/,
    refused: ['create_directory', () => ({ path: join(folder, 'inside/elsewhere') })],
  },
  {
    server: 'memory',
    passes: ['read_graph', () => ({})],
    says: /entities/,
    refused: ['delete_entities', () => ({ entityNames: ['a', 'b'] })],
  },
  {
    server: 'thinking',
    passes: [
      'sequentialthinking',
      () => ({ thought: 'one', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }),
    ],
    says: /thoughtNumber/,
    refused: [
      'sequentialthinking',
      () => ({ thought: 'many', nextThoughtNeeded: true, thoughtNumber: 1, totalThoughts: 6 }),
    ],
  },
  {
    server: 'everything',
    passes: ['echo', () => ({ message: 'hello' })],
    says: /Echo: hello/,
    refused: ['get-sum', () => ({ a: 11, b: 1 })],
  },
];

for (const { server: name, passes, says, refused } of INSPECTED) {
  test(`the Inspector’s command line calls a tool of ${name}, and is told why a call is refused`, async () => {
    const call = ([tool, args]: readonly [string, () => object]): Promise<Inspected> => {
      const given = Object.entries(args()).flatMap(([key, value]) => [
        '--tool-arg',
        `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
      ]);
      return inspect('--method', 'tools/call', '--tool-name', `${name}__${tool}`, ...given);
    };
    const [passed, held] = await Promise.all([call(passes), call(refused)]);
    assert.notEqual(passed.isError, true, JSON.stringify(passed));
    assert.match(JSON.stringify(passed), says);
    assert.equal(held.isError, true);
    const { decision, reason } = held._meta?.['toolgate/check'] ?? {};
    assert.deepEqual([decision, reason], ['refuse', 'condition_failed'], JSON.stringify(held));
  });
}
