import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { canonicalize } from '../../receipts/canonical.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { argumentsDigest, originsDigest } from '../../receipts/digest.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { type Backend, httpBackend } from '../http/backends.ts';
import { bytesOf, HEADER, SOME_DIGEST, sampleKey, signedHistory } from '../receipts/sample.ts';

const ISSUER_KEY = sampleKey(9);

function publicPem(): string {
  const prefix = Buffer.from('302a300506032b6570032100', 'hex');
  const der = Buffer.concat([prefix, ISSUER_KEY.publicBytes]);
  return createPublicKey({ key: der, format: 'der', type: 'spki' }).export({ format: 'pem', type: 'spki' }).toString();
}

/** A receipt of the issuer's for one call. */
function receiptFor(session: string, tool: string, args: { readonly amount: number }): string {
  const nonce = bytesOf(HEADER.nonce);
  const body = {
    step: 0,
    tool,
    agent: 'desk',
    arguments: argumentsDigest(nodeCrypto, nonce, canonicalize(args)),
    origins: originsDigest(nodeCrypto, nonce, canonicalize({})),
    labels: [],
    decision: 'allow',
    reasons: ['allow'],
    at: Date.now() - 1_000,
    policy: SOME_DIGEST,
  } as const;
  const history = signedHistory([{ body }], ISSUER_KEY, { ...HEADER, session, issuer: 'desk-runtime' });
  return Buffer.from(JSON.stringify(history)).toString('base64url');
}

describe('limits on a route that admits an issuer’s receipts', () => {
  let backend: Backend;
  let gateway: TestGateway;
  let status = 200;
  let reached = 0;

  before(async () => {
    backend = await httpBackend((request, response) => {
      reached += 1;
      request.resume().on('end', () => {
        response.statusCode = status;
        response.setHeader('content-type', 'application/json').end('{}');
      });
    });
    gateway = await startTestGateway(
      {
        tenant: 'shop',
        audience: 'shop-gateway',
        keys: {
          signing: './gateway.pem',
          issuers: [{ id: 'desk-runtime', public_key: './desk.pub', agents: ['desk'], tools: ['shop/pay'] }],
        },
        agents: { desk: { privilege: 'high' } },
        routes: [
          {
            name: 'shop',
            path: '/shop',
            upstream: backend.origin,
            agents: ['desk'],
            verify: 'receipt',
            http: [
              {
                name: 'pay',
                method: 'POST',
                path: '/pay',
                writes: true,
                input: { type: 'object', properties: { amount: { type: 'number' } } },
              },
            ],
            tools: [{ name: 'pay', currency: 'EUR', spend: [{ field: 'amount', at_most: 100, per: 'day' }] }],
          },
        ],
      },
      { files: { 'desk.pub': publicPem() } },
    );
  });
  after(async () => {
    await gateway.close();
    await backend.close();
  });

  const pay = async (session: string, amount: number): Promise<{ status: number; text: string }> =>
    gateway.request('POST', '/shop/pay', {
      body: { amount },
      headers: { 'toolgate-agent': 'desk', 'toolgate-receipt': receiptFor(session, 'shop/pay', { amount }) },
    });

  test('each receipt spends of the limit, and what failed is given back', async () => {
    status = 422;
    assert.equal((await pay('x-0', 90)).status, 422);
    status = 200;
    const answers = await Promise.all(['x-1', 'x-2', 'x-3', 'x-4'].map((session) => pay(session, 40)));
    const ran = answers.filter((answer) => answer.status === 200);
    const refused = answers.filter((answer) => answer.status === 403);
    assert.equal(ran.length, 2, answers.map(({ text }) => text).join('\n'));
    assert.equal(refused.length, 2);
    assert.match(refused[0]?.text ?? '', /spend_exceeded/);
    assert.equal(reached, 3);
  });
});
