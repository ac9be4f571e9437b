import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { finishDraft, loadGateway } from '../../gateway/catalogue/load-gateway.ts';
import type { ToolProvider, ToolSource } from '../../gateway/catalogue/tool-source.ts';
import { draftConfigText } from '../../gateway/config/load.ts';
import { renderProblems } from '../../gateway/config/problem.ts';
import { catalogueDeps } from '../../gateway/load/catalogue-deps.ts';

const TEXT = `agents: {desk: {}}
routes:
  - name: files
    mcp: https://mcp.example/mcp
    exclude: ["debug_*"]
    tools:
      - {name: "read_*", writes: false}
      - {name: later, writes: false}
      - {name: write_file, undo: none, idempotent: true, after: [read_file, listed_later], description: Writes.}
  - name: shop
    upstream: http://127.0.0.1:9100
    http: [{name: read_file, method: GET, path: /file}]
    tools: [{name: read_file, not_after: [untrusted, files/read_file, files/unknown]}]
`;

function source(name: string, more: Partial<ToolSource> = {}): ToolSource {
  return {
    name,
    description: `What the server says of ${name}.`,
    input: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
    writes: { assumed: true },
    readsOutside: true,
    pinned: true,
    path: ['routes', 0, 'mcp'],
    ...more,
  };
}

async function load(tools: readonly ToolSource[], complete: boolean): ReturnType<typeof finishDraft> {
  const mcp: ToolProvider = () => ({ tools, complete, problems: [] });
  return finishDraft(draftConfigText('gateway.yaml', TEXT, { env: {}, notYet: {} }), { ...catalogueDeps(), mcp });
}

test('a server’s tools take the operator’s words; what it may list later is no fault', async () => {
  const tools = [
    source('read_file', { partial: ['a header is not judged'] }),
    source('write_file', { pin: 'changed' }),
    source('debug_dump'),
  ];
  const { loaded, problems } = await load(tools, false);
  assert.ok(loaded !== undefined, renderProblems(problems));
  assert.deepEqual(
    problems.map(({ code, line }) => [code, line]),
    [['meets_no_tool', 8]],
  );
  const { catalogue } = loaded.built;
  assert.deepEqual([...catalogue.tools.keys()], ['files/read_file', 'files/write_file', 'shop/read_file']);
  const [read, write] = [catalogue.tools.get('files/read_file'), catalogue.tools.get('files/write_file')];
  assert.equal(read?.writes, false);
  assert.equal(read?.readsOutside, true);
  assert.deepEqual(read?.input.partial, ['a header is not judged']);
  assert.deepEqual(
    read?.input.validate({ path: 'a', other: 1 }).map(({ pointer }) => pointer),
    ['/other'],
  );
  assert.equal(write?.pin, 'changed');
  assert.equal(write?.description, 'Writes.');
  // A bare name is the own route's first, whatever another server offers.
  assert.deepEqual(write?.after, [{ tool: 'files/read_file' }, { tool: 'files/listed_later' }]);
  assert.deepEqual(catalogue.tools.get('shop/read_file')?.notAfter, ['untrusted', 'files/read_file', 'files/unknown']);
});

test('of a server whose tools are all known, a name that is not among them is a fault', async () => {
  const { loaded, problems } = await load([source('read_file'), source('write_file')], true);
  assert.equal(loaded, undefined);
  assert.deepEqual(
    problems.map(({ code, line }) => [code, line]),
    [
      ['meets_no_tool', 5],
      ['unknown_tool_name', 8],
      ['unknown_tool_name', 9],
      ['unknown_tool_name', 13],
    ],
  );
});

test('a glob lowers no guard of a tool whose definition is not pinned', async () => {
  const tools = [source('read_file', { pinned: false }), source('write_file'), source('later', { pinned: false })];
  const { loaded, problems } = await load(tools, true);
  const codes = problems.map(({ code, line, column }) => `${line}:${column} ${code}`);
  assert.ok(codes.includes('7:26 glob_on_unpinned'), renderProblems(problems));
  assert.equal(loaded, undefined);
  const named = await load([...tools, source('listed_later')], false);
  // The glob's `writes: false` is left out, the word said of the tool by its own name is not.
  assert.equal(named.loaded?.built.catalogue.tools.get('files/read_file')?.writes, true);
  assert.equal(named.loaded?.built.catalogue.tools.get('files/later')?.writes, false);
});

const EXAMPLES = fileURLToPath(new URL('../../deploy/examples/', import.meta.url));
// The reference configuration needs its variables, and is held to more elsewhere.
const isExample = (name: string): boolean => /gateway[^/]*\.ya?ml$/.test(name) && !name.startsWith('reference/');
for (const example of readdirSync(EXAMPLES, { recursive: true, encoding: 'utf8' }).filter(isExample)) {
  test(`the example ${example} has no fault`, async () => {
    const { loaded, problems } = await loadGateway(`${EXAMPLES}${example}`, { env: {} }, catalogueDeps());
    assert.ok(loaded !== undefined, renderProblems(problems));
  });
}
