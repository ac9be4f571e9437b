import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Client } from '@modelcontextprotocol/client';
import { fromJsonSchema, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { type Backend, eventually, httpBackend } from '../http/backends.ts';
import { connectClient } from './clients.ts';
import { type HttpFixture, startHttpFixture } from './fixture-http.ts';
import { PNG, schema } from './fixture-schema.ts';

/** Every record that must not be seen says so. */
const GOOD = { id: 1, pay: 9 };
const BAD = { id: 2, pay: 1, note: 'HIDDEN' };
const ROWS = { jobs: [GOOD, BAD], nextCursor: 'page-2' };
const SHOWN = { jobs: [GOOD], nextCursor: 'page-2' };

type Block = Readonly<Record<string, unknown>>;

function text(value: unknown): Block {
  return { type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) };
}

const IMAGE = { type: 'image', data: PNG, mimeType: 'image/png' };
const SOUND = { type: 'audio', data: 'UklGRg==', mimeType: 'audio/wav' };
const EMBEDDED = { type: 'resource', resource: { uri: 'test://jobs', mimeType: 'text/plain', text: 'HIDDEN' } };
const LINKED = { type: 'resource_link', uri: 'test://jobs/HIDDEN', name: 'HIDDEN' };

interface Case {
  /** The tool, of those that the configuration filters. */
  readonly tool?: 'jobs' | 'lenient' | 'orders';
  /** What the server answers. */
  readonly answer: {
    readonly content?: readonly Block[];
    readonly structuredContent?: unknown;
    readonly isError?: true;
    readonly _meta?: unknown;
    readonly rows?: unknown;
  };
  /** What is passed on; absent where nothing is. */
  readonly shown?: {
    readonly content: readonly Block[];
    readonly structuredContent?: unknown;
    readonly isError?: true;
  };
  readonly held?: number;
}

/** By title. A text in `shown` is compared as JSON. */
const CASES: Readonly<Record<string, Case>> = {
  'both forms say the same afterwards': {
    answer: { structuredContent: ROWS, content: [text(ROWS)] },
    shown: { structuredContent: SHOWN, content: [text(SHOWN)] },
    held: 1,
  },
  'a text that says more than the structured content is not believed': {
    answer: { structuredContent: { jobs: [GOOD] }, content: [text(ROWS), text('and HIDDEN')] },
    shown: { structuredContent: { jobs: [GOOD] }, content: [text({ jobs: [GOOD] })] },
    held: 0,
  },
  'structured content without any text gets one': {
    answer: { structuredContent: ROWS, content: [] },
    shown: { structuredContent: SHOWN, content: [text(SHOWN)] },
    held: 1,
  },
  'text alone': { answer: { content: [text(ROWS)] }, shown: { content: [text(SHOWN)] }, held: 1 },
  'each of several texts': {
    answer: { content: [text(ROWS), text({ jobs: [BAD, BAD] })] },
    shown: { content: [text(SHOWN), text({ jobs: [] })] },
    held: 3,
  },
  'images, sounds and resources beside structured content are left out': {
    answer: { structuredContent: ROWS, content: [IMAGE, SOUND, EMBEDDED, LINKED, text('HIDDEN')] },
    shown: { structuredContent: SHOWN, content: [text(SHOWN)] },
    held: 1,
  },
  'a record without the value, where that passes': {
    tool: 'lenient',
    answer: { structuredContent: { jobs: [GOOD, { id: 3 }, { id: 4, pay: null }, BAD, { pay: 'HIDDEN' }] } },
    shown: {
      structuredContent: { jobs: [GOOD, { id: 3 }, { id: 4, pay: null }] },
      content: [text({ jobs: [GOOD, { id: 3 }, { id: 4, pay: null }] })],
    },
    held: 2,
  },
  'a record without the value, where it does not': {
    answer: { content: [text({ jobs: [{ note: 'HIDDEN' }, GOOD] })] },
    shown: { content: [text({ jobs: [GOOD] })] },
    held: 1,
  },
  'lists in lists': {
    tool: 'orders',
    answer: {
      content: [
        text({
          orders: [
            { id: 7, items: [GOOD, BAD] },
            { id: 8, note: 'HIDDEN' },
          ],
        }),
      ],
    },
    shown: { content: [text({ orders: [{ id: 7, items: [GOOD] }] })] },
    held: 2,
  },
  'members beside both, of the result and of its texts': {
    answer: { structuredContent: ROWS, content: [], _meta: { 'board/rows': ROWS }, rows: ROWS },
    shown: { structuredContent: SHOWN, content: [text(SHOWN)] },
    held: 1,
  },
  'members beside text, of the result and of the text': {
    answer: {
      content: [{ ...text({ jobs: [GOOD] }), _meta: ROWS }],
      _meta: ROWS,
    },
    shown: { content: [text({ jobs: [GOOD] })] },
    held: 0,
  },
  'records of a call that failed': {
    answer: { isError: true, structuredContent: { error: 'in part' }, content: [text(ROWS), text('"it broke off"')] },
    shown: {
      isError: true,
      structuredContent: { error: 'in part' },
      content: [text(SHOWN), text('"it broke off"')],
    },
    held: 1,
  },
  'no content at all': { answer: { content: [] }, shown: { content: [] }, held: 0 },
  'an image beside text': { answer: { content: [text(ROWS), IMAGE] } },
  'a resource alone': { answer: { content: [EMBEDDED] } },
  'a link to a resource': { answer: { content: [LINKED] } },
  'a text that is no JSON': { answer: { content: [text('1: HIDDEN')] } },
  'JSON and then words': { answer: { content: [text(SHOWN), text('and HIDDEN')] } },
  'a member that is there twice': {
    answer: { content: [text('{"jobs":[],"jobs":[{"pay":1,"note":"HIDDEN"}]}')] },
  },
  'no list where the filter looks': { answer: { structuredContent: { rows: [BAD] }, content: [text(ROWS)] } },
  'more than may be read': {
    answer: { structuredContent: { jobs: [BAD, { ...GOOD, pad: 'x'.repeat(70_000) }] }, content: [] },
  },
  'more text than may be read': { answer: { content: [text({ jobs: [BAD, { ...GOOD, pad: 'x'.repeat(70_000) }] })] } },
};

/** What the server says behind a log message that comes when its call is over. */
const MARKER = 'notifications/of-its-own';

/** Two pages, each with a record that is held back. */
const PAGES: Readonly<Record<string, unknown>> = {
  '': ROWS,
  'page-2': { jobs: [BAD, { id: 5, pay: 7 }], nextCursor: null },
};

const READS = { readOnlyHint: true, openWorldHint: false } as const;
const INPUT = fromJsonSchema(schema({ as: { type: 'string' }, cursor: { type: 'string' } }));

/** A server of the SDK that answers what a case says, for each of its tools. */
function makeBoard(): McpServer {
  const server = new McpServer({ name: 'board', version: '1.0.0' }, { capabilities: { logging: {} } });
  for (const name of ['jobs', 'lenient', 'orders']) {
    server.registerTool(name, { description: name, inputSchema: INPUT, annotations: READS }, (args) => {
      const { as, cursor = '' } = args as { as?: string; cursor?: string };
      const page = { structuredContent: PAGES[cursor], content: [text(PAGES[cursor])] };
      return { content: [], ...(as === undefined ? page : CASES[as]?.answer) } as never;
    });
  }
  server.registerTool(
    'talkative',
    { description: 'talks', inputSchema: INPUT, annotations: READS },
    async (args, ctx) => {
      const { mcpReq } = ctx;
      await mcpReq.log('info', { row: BAD });
      const progressToken = mcpReq._meta?.progressToken;
      if (progressToken !== undefined) {
        const params = { progressToken, progress: 1, total: 2, message: 'HIDDEN' };
        await mcpReq.notify({ method: 'notifications/progress', params });
      }
      if ((args as { as?: string }).as === 'asking' && mcpReq.inputResponses === undefined) {
        const asked = { role: 'user' as const, content: { type: 'text' as const, text: 'HIDDEN' } };
        const sample = inputRequired.createMessage({ messages: [asked], maxTokens: 9 });
        return inputRequired({ inputRequests: { sample } });
      }
      if ((args as { as?: string }).as === 'late') {
        setTimeout(async () => {
          await server.sendLoggingMessage({ level: 'info', data: BAD });
          await server.server.notification({ method: MARKER } as never);
        }, 20);
      }
      return { structuredContent: ROWS, content: [text(ROWS)] } as never;
    },
  );
  return server;
}

function filtered(name: string, each = 'jobs[]', unknown = {}): object {
  const keep = [{ field: 'pay', at_least: 5, ...unknown }];
  return { name, writes: false, sends_out: true, filter: { each, keep } };
}

interface Shown {
  readonly content?: readonly Block[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
  readonly _meta?: Readonly<Record<string, unknown>> | undefined;
}

function asJson({ content = [], structuredContent, isError = false }: Shown): unknown {
  const blocks = content.map((block) => (block['type'] === 'text' ? JSON.parse(String(block['text'])) : block));
  return { blocks, structuredContent, isError };
}

describe('a filtered read of an MCP server', () => {
  let board: HttpFixture;
  let backend: Backend;
  let gateway: TestGateway;
  before(async () => {
    board = await startHttpFixture(makeBoard);
    backend = await httpBackend((request, response) => {
      request.resume();
      response.setHeader('content-type', 'application/json').end(JSON.stringify(ROWS));
    });
    gateway = await startTestGateway({
      agents: { desk: {} },
      store: { url: './toolgate.db', max_answer: '64KiB' },
      routes: [
        {
          name: 'board',
          mcp: board.url,
          agents: ['desk'],
          annotations: 'trusted',
          tools: [
            filtered('jobs'),
            filtered('talkative'),
            filtered('lenient', 'jobs[]', { unknown: 'pass' }),
            filtered('orders', 'orders[].items[]'),
          ],
        },
        {
          name: 'shop',
          upstream: backend.origin,
          agents: ['desk'],
          http: [{ name: 'jobs', method: 'GET', path: '/jobs' }],
          tools: [{ name: 'jobs', filter: { each: 'jobs[]', keep: [{ field: 'pay', at_least: 5 }] } }],
        },
      ],
    });
  });
  after(async () => {
    await gateway.close();
    await board.close();
    await backend.close();
  });

  /** Held-back counts of the audit log, newest last. */
  const logged = (): readonly number[] => {
    const log = readFileSync(join(gateway.folder, 'audit.jsonl'), 'utf8');
    assert.doesNotMatch(log, /HIDDEN/);
    return log
      .split('\n')
      .filter((line) => line.includes('"held_back"'))
      .map((line) => (JSON.parse(line) as { held_back: number }).held_back);
  };

  for (const era of ['legacy', 'modern'] as const) {
    describe(`(${era} era)`, () => {
      const heard: unknown[] = [];
      let client: Client;
      const prepare = (made: Client): void => {
        made.fallbackNotificationHandler = (notification) => {
          heard.push(notification);
          return Promise.resolve();
        };
        made.fallbackRequestHandler = (request) => {
          heard.push(request);
          return Promise.resolve({ role: 'assistant', content: { type: 'text', text: 'yes' }, model: 'm' });
        };
      };
      before(async () => {
        client = await connectClient(`${gateway.url}/mcp`, { era, capabilities: { sampling: {} }, prepare });
      });
      after(() => client.close());

      const call = async (name: string, args: Record<string, string>, members?: object): Promise<Shown> => {
        const _meta = members === undefined ? {} : { 'toolgate/call': members };
        return (await client.callTool({ name, arguments: args, _meta })) as Shown;
      };

      test('shows no record that fails, whatever form the answer has', async (t) => {
        for (const [as, { tool = 'jobs', shown, held }] of Object.entries(CASES)) {
          await t.test(as, async () => {
            if (shown === undefined) {
              const counts = logged().length;
              await assert.rejects(call(`board__${tool}`, { as }, {}), (error: unknown) => {
                const { message, data } = error as { message: string; data?: unknown };
                assert.match(JSON.stringify(data), /urn:toolgate:answer_not_filtered/);
                assert.doesNotMatch(JSON.stringify([message, data]), /HIDDEN/);
                return true;
              });
              assert.equal(logged().length, counts);
              return;
            }
            const earlier = logged().length;
            const result = await call(`board__${tool}`, { as }, {});
            assert.deepEqual(asJson(result), asJson(shown));
            assert.doesNotMatch(JSON.stringify(result), /HIDDEN/);
            assert.equal(result._meta?.['toolgate/held-back'], held);
            // The line follows the answer.
            assert.ok(await eventually(() => logged().length > earlier));
            assert.equal(logged().at(-1), held);
          });
        }
      });

      test('filters each page, and a repeat of it', async () => {
        const first = await call('board__jobs', {}, { idempotency_key: `pages-${era}`, session: `pages-${era}` });
        const again = await call('board__jobs', {}, { idempotency_key: `pages-${era}`, session: `pages-${era}` });
        assert.deepEqual([first.structuredContent, again.structuredContent], [SHOWN, SHOWN]);
        assert.equal(again._meta?.['toolgate/replayed'], true);
        assert.doesNotMatch(JSON.stringify(again), /HIDDEN/);
        const second = await call('board__jobs', { cursor: SHOWN.nextCursor });
        const expected = { jobs: [{ id: 5, pay: 7 }], nextCursor: null };
        assert.deepEqual(asJson(second), asJson({ structuredContent: expected, content: [text(expected)] }));
        assert.equal(second._meta?.['toolgate/held-back'], undefined, 'a client that asks for nothing is told nothing');
      });

      test('holds back what the server says on the way, and lets it ask nothing', async () => {
        heard.length = 0;
        const progress: unknown[] = [];
        const request = { name: 'board__talkative', arguments: {} };
        const result = await client.callTool(request, { onprogress: (told) => progress.push(told) });
        assert.deepEqual(result.structuredContent, SHOWN);
        assert.deepEqual(progress, [{ progress: 1, total: 2 }]);
        const asked = await client.callTool({ name: 'board__talkative', arguments: { as: 'asking' } });
        assert.equal(asked.isError, true);
        assert.doesNotMatch(JSON.stringify([asked, heard]), /HIDDEN/);
        assert.deepEqual(heard, []);
        // A server of sessions can also say it when the answer is long here.
        if (era === 'modern') return;
        const late = await connectClient(`${gateway.url}/mcp/board`, { prepare });
        await late.callTool({ name: 'talkative', arguments: { as: 'late' } });
        assert.ok(await eventually(() => heard.length > 0));
        assert.deepEqual(
          heard.map((told) => (told as { method?: string }).method),
          [MARKER],
        );
        await late.close();
      });

      test('and of an HTTP route that is offered there', async () => {
        const result = await call('shop__jobs', {}, {});
        assert.deepEqual(asJson(result), asJson({ structuredContent: SHOWN, content: [text(SHOWN)] }));
        assert.equal(result._meta?.['toolgate/held-back'], 1);
      });
    });
  }
});
