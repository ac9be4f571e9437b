import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { connect } from 'node:tls';
import { createEdgeServer, type EdgeServer } from '../../gateway/http/server.ts';
import { Homes } from '../../gateway/workers/homes.ts';
import { start } from '../http/backends.ts';

const SECRETS = {
  ours: 'b3Vycy1vdXJzLW91cnMtb3Vycy1vdXJzLW91cnMtb3U',
  theirs: 'dGhlaXJzLXRoZWlycy10aGVpcnMtdGhlaXJzLXRoZWk',
};
const homesOf = (number: number, secret: string): Homes => new Homes({ number, count: 2, port: 1, secret });
/** An id of a conversation that lives in the second worker. */
const ELSEWHERE = Array.from({ length: 50 }, (_, at) => `id-${at}`).find(
  (id) => createHash('sha256').update(id).digest().readUInt32BE(0) % 2 === 1,
);

let first: Homes;
let edge: EdgeServer;
let url: string;
before(async () => {
  first = homesOf(1, SECRETS.ours);
  edge = createEdgeServer({
    listen: { host: '127.0.0.1', port: 0 },
    handle: async (exchange) => {
      if (!(await first.passOn(exchange, ELSEWHERE ?? '', '{"a":1}'))) exchange.json(200, '"here"');
    },
  });
  url = `http://127.0.0.1:${(await edge.listen()).port}`;
});
after(() => edge.close({ graceMs: 0 }));

const ask = (): Promise<string> =>
  fetch(url, { method: 'POST', headers: { authorization: 'Bearer CANARY' }, body: '{"a":1}' }).then((a) => a.text());

/** The listener of a worker for the others. */
async function hops(secret: string): Promise<{ readonly edge: EdgeServer; readonly port: number; taken(): number }> {
  const homes = homesOf(2, secret);
  let taken = 0;
  const server = createEdgeServer({
    listen: { host: '127.0.0.1', port: 0 },
    psk: homes.key,
    handle: (exchange) => {
      taken += 1;
      exchange.json(200, JSON.stringify(exchange.header('authorization') ?? 'nothing'));
    },
  });
  return { edge: server, port: (await server.listen()).port, taken: () => taken };
}

test('a request is passed on to the worker that proves to have the key, whole', async () => {
  const second = await hops(SECRETS.ours);
  first.setPeers([[2, second.port]]);
  assert.equal(await ask(), '"Bearer CANARY"');
  await second.edge.close({ graceMs: 0 });
  assert.equal(await ask(), '"here"');
});

test('a stranger at the port of a worker that is gone gets nothing: no credential, no key, not a byte in clear', async () => {
  for (const manners of ['another key', 'silent', 'plain'] as const) {
    const bytes: Buffer[] = [];
    const impostor = await hops(SECRETS.theirs);
    const listener = await start(
      createServer((socket: Socket) => {
        socket
          .on('error', () => undefined)
          .on('data', (chunk: Buffer) => {
            bytes.push(chunk);
            if (manners === 'plain') socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno');
            if (manners === 'silent') socket.end();
          });
      }),
    );
    first.setPeers([[2, manners === 'another key' ? impostor.port : listener.port]]);
    assert.equal(await ask(), '"here"', manners);
    assert.equal(impostor.taken(), 0);
    const text = Buffer.concat(bytes).toString('latin1');
    assert.ok(!text.includes('CANARY') && !text.includes(SECRETS.ours) && !text.includes('POST'), manners);
    await Promise.all([impostor.edge.close({ graceMs: 0 }), listener.close()]);
  }
});

test('who has not the key is not heard on the port of a worker: over another, over none, or in clear', async () => {
  const second = await hops(SECRETS.ours);
  for (const options of [
    { ciphers: 'PSK-AES256-GCM-SHA384', psk: SECRETS.theirs },
    { ciphers: 'PSK-AES256-GCM-SHA384', psk: '' },
    { ciphers: 'DEFAULT' },
  ]) {
    const { psk, ...rest } = { psk: undefined, ...options };
    const error = await new Promise<unknown>((resolve) => {
      const socket = connect({
        host: '127.0.0.1',
        port: second.port,
        maxVersion: 'TLSv1.2',
        rejectUnauthorized: false,
        ...rest,
        ...(psk === undefined
          ? {}
          : { pskCallback: () => ({ identity: 'worker', psk: Buffer.from(psk === '' ? '00' : psk, 'base64url') }) }),
      });
      socket.once('secureConnect', () => resolve(undefined)).once('error', resolve);
    });
    assert.ok(error instanceof Error, JSON.stringify(options));
  }
  await assert.rejects(fetch(`http://127.0.0.1:${second.port}/mcp`, { headers: { 'x-worker-hop': SECRETS.ours } }));
  assert.equal(second.taken(), 0);
  await second.edge.close({ graceMs: 0 });
});
