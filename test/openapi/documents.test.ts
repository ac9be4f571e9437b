import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { loadGateway } from '../../gateway/catalogue/load-gateway.ts';
import { renderTools } from '../../gateway/catalogue/render-tools.ts';
import { validateConfig } from '../../gateway/catalogue/validate.ts';
import { catalogueDeps } from '../../gateway/load/catalogue-deps.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { type EchoBackend, startEcho } from './echo-backend.ts';

const DOCUMENT = `openapi: 3.1.0
info: {title: Served, version: '1'}
paths:
  /orders/{id}:
    get:
      operationId: get_order
      summary: One order.
      parameters: [{name: id, in: path, required: true, schema: {type: string}}, {name: full, in: query, schema: {type: boolean}}]
  /notes:
    post:
      operationId: write_note
      requestBody: {content: {application/json: {schema: {type: object, properties: {text: {type: string, format: prose}}}}}}
  /upload:
    post:
      operationId: upload
      requestBody: {required: true, content: {application/octet-stream: {}}}
`;
const DIGEST = digestOf(DOCUMENT);

function digestOf(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

let backend: EchoBackend;
let gateway: TestGateway;

function config(openapi: object | string): object {
  return { agents: { desk: {} }, routes: [{ name: 'api', path: '/api', upstream: backend.url, openapi }] };
}

before(async () => {
  backend = await startEcho();
  backend.files.set('/openapi.yaml', DOCUMENT);
  const document = `${backend.url}/openapi.yaml`;
  gateway = await startTestGateway(config({ document, digest: DIGEST }), { files: { 'api.yaml': DOCUMENT } });
});

after(async () => {
  await gateway.close();
  await backend.close();
});

test('a document that the upstream serves is taken with its digest alone', async () => {
  assert.equal((await gateway.request('GET', '/api/orders/7')).status, 200);
  const document = `${backend.url}/openapi.yaml`;
  const [unpinned] = await gateway.reconfigure(config(document));
  assert.equal(unpinned?.code, 'api_unpinned');
  assert.ok(unpinned?.message.includes(DIGEST), unpinned?.message);
  const other = digestOf('another');
  const [changed] = await gateway.reconfigure(config({ document, digest: other }));
  assert.equal(changed?.code, 'api_changed');
  assert.ok(changed?.message.includes(other) && changed.message.includes(DIGEST));
  const [foreign] = await gateway.reconfigure(config({ document: 'http://127.0.0.1:9/x.yaml', digest: DIGEST }));
  assert.equal(foreign?.code, 'foreign_document');
  const missing = await gateway.reconfigure(config({ document: `${backend.url}/none`, digest: DIGEST }));
  assert.equal(missing[0]?.code, 'api_changed');
  // What was refused changed nothing.
  assert.equal((await gateway.request('GET', '/api/orders/7')).status, 200);
});

test('what is pinned is not fetched again, and its server may be gone', async () => {
  const document = `${backend.url}/openapi.yaml`;
  backend.files.delete('/openapi.yaml');
  const problems = await gateway.reconfigure(config({ document, digest: DIGEST }));
  assert.ok(problems.every(({ severity }) => severity === 'warning'));
  backend.files.set('/openapi.yaml', DOCUMENT);
});

test('a file that changed is read again when the config is, and one that did not is not', async () => {
  await gateway.reconfigure(config('./api.yaml'));
  const policy = gateway.gateway.loaded.policy;
  const before = gateway.gateway.loaded.catalogue.tools.get('api/get_order');
  await gateway.reconfigure(config('./api.yaml'));
  assert.equal(gateway.gateway.loaded.policy, policy);
  const changed = DOCUMENT.replace('operationId: get_order', 'operationId: show_order');
  await writeFile(join(gateway.folder, 'api.yaml'), changed);
  const [problem] = await gateway.reconfigure(config({ document: './api.yaml', digest: DIGEST }));
  assert.equal(problem?.code, 'api_changed');
  await gateway.reconfigure(config('./api.yaml'));
  const { tools } = gateway.gateway.loaded.catalogue;
  assert.ok(before !== undefined && tools.has('api/show_order') && !tools.has('api/get_order'));
  assert.notEqual(gateway.gateway.loaded.policy, policy);
});

test('the policy has what any file of a document says', async () => {
  const parts = join(gateway.folder, 'parts');
  await mkdir(parts);
  const part = (maximum: number): string => `openapi: 3.1.0
paths:
  /n:
    post:
      operationId: n
      requestBody: {content: {application/json: {schema: {$ref: './n.yaml'}}}}
# ${maximum > 0}
`;
  const schema = (maximum: number): string => `{type: object, properties: {n: {type: integer, maximum: ${maximum}}}}`;
  const policies: string[] = [];
  for (const maximum of [10, 10, 20]) {
    await writeFile(join(parts, 'api.yaml'), part(maximum));
    await writeFile(join(parts, 'n.yaml'), schema(maximum));
    const problems = await gateway.reconfigure(config('./parts/api.yaml'));
    assert.ok(problems.every(({ severity }) => severity === 'warning'));
    policies.push(gateway.gateway.loaded.policy);
    const body = { tool: 'api/n', arguments: { n: 15 }, session: `n-${policies.length}` };
    const { decision } = (await gateway.request('POST', '/v1/check', { body })).json as { decision: string };
    assert.equal(decision, maximum === 20 ? 'confirm' : 'refuse');
  }
  assert.equal(policies[0], policies[1]);
  assert.notEqual(policies[1], policies[2]);
});

test('the list of tools shows requests, effects, arguments, and what is partial and why', async () => {
  await writeFile(join(gateway.folder, 'api.yaml'), DOCUMENT);
  await gateway.reconfigure(config('./api.yaml'));
  const { loaded } = await loadGateway(gateway.configFile, { env: {} }, catalogueDeps());
  assert.ok(loaded !== undefined);
  const lines = renderTools(loaded.built, { json: false }).split('\n');
  assert.match(lines[1] ?? '', /^api\/get_order +GET \/orders\/\{id\} +reads +id full\? +desk/);
  assert.match(lines[2] ?? '', /^api\/write_note +POST \/notes +writes +text\? +desk +.*partial: .*prose/);
  assert.match(lines[3] ?? '', /^api\/upload +POST \/upload +refused: .*octet-stream/);
  const json: { tools: { tool: string; partial: string[]; input: object }[]; refused: { tool: string }[] } = JSON.parse(
    renderTools(loaded.built, { json: true }),
  );
  assert.deepEqual(
    json.tools.map(({ tool }) => tool),
    ['api/get_order', 'api/write_note'],
  );
  assert.equal(json.tools[1]?.partial.length, 1);
  assert.deepEqual(
    json.refused.map(({ tool }) => tool),
    ['api/upload'],
  );
});

test('validate says what of a document is partial, refused and not as its version says', async () => {
  await writeFile(join(gateway.folder, 'api.yaml'), `${DOCUMENT}wrong: 1\n`);
  const { text, exitCode } = await validateConfig(gateway.configFile, { env: {} }, catalogueDeps({ thorough: true }));
  assert.equal(exitCode, 0, text);
  for (const code of ['schema_partial', 'operation_refused', 'document_invalid'])
    assert.ok(text.includes(`[${code}]`), text);
});
