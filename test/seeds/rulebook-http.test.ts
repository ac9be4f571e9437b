import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { type Answer, OVER_HTTP } from './driver.ts';
import { readVector } from './seed-config.ts';

interface Expected {
  readonly kind: 'allow' | 'ungoverned' | 'confirm' | 'refuse';
  readonly reason?: string;
  readonly question?: string;
  readonly flow?: string;
  readonly line?: number;
}

interface Case {
  readonly id: string;
  readonly sources: readonly { readonly file: string; readonly text: string }[];
  readonly problems: readonly { readonly severity: string; readonly line: number }[];
  readonly decides?: readonly {
    readonly tool: string;
    readonly facts?: Record<string, boolean>;
    readonly arguments?: Record<string, unknown>;
    readonly expect: Expected;
  }[];
}

const { cases } = readVector<{ cases: readonly Case[] }>('rulebook/twelve.json');

/** A gateway whose tools are those that a case asks about: reads, so that nothing but the rulebook asks or refuses. */
function start({ sources, decides = [] }: Case): Promise<TestGateway> {
  const names = [...new Set(['other', ...decides.map(({ tool }) => tool)])];
  return startTestGateway(
    {
      rulebook: sources.map(({ file }) => `./${file}`),
      agents: { desk: {} },
      routes: [
        {
          name: 'shop',
          path: '/shop',
          upstream: 'http://127.0.0.1:9',
          agents: ['desk'],
          http: names.map((name) => ({
            name,
            method: 'GET',
            path: `/${name}`,
            input: { type: 'object', properties: { amount: { type: 'number' } } },
          })),
        },
      ],
    },
    { files: Object.fromEntries(sources.map(({ file, text }) => [file, text])) },
  );
}

function compare(answer: Answer, expect: Expected): void {
  const told = JSON.stringify(answer);
  const decision = expect.kind === 'ungoverned' ? 'allow' : expect.kind;
  assert.equal(answer.decision, decision, told);
  if (expect.reason !== undefined) assert.equal(answer.reason, expect.reason, told);
  if (decision === 'confirm') assert.deepEqual(answer.reasons, ['gate_clarify'], told);
  if (expect.question !== undefined) assert.equal(answer.detail['question'], expect.question, told);
  if (decision === 'allow') return;
  if (expect.flow !== undefined) assert.equal(answer.detail['flow'], expect.flow, told);
  if (expect.line !== undefined) assert.equal(answer.detail['line'], expect.line, told);
}

describe('the twelve cases of the rulebook, over HTTP', () => {
  assert.equal(cases.length, 12);
  for (const one of cases) {
    test(one.id, async () => {
      const [error] = one.problems.filter(({ severity }) => severity === 'error');
      if (error !== undefined) {
        await assert.rejects(start(one), new RegExp(`policy\\.co:${error.line}:`));
        return;
      }
      const gateway = await start(one);
      try {
        for (const { tool, facts = {}, arguments: args = {}, expect } of one.decides ?? []) {
          const answer = await OVER_HTTP.check(gateway, { tool, arguments: args, context: facts });
          compare(answer, expect);
        }
      } finally {
        await gateway.close();
      }
    });
  }
});

test('a rulebook whose error stands behind more warnings than are listed starts no gateway', async () => {
  const warned = Array.from({ length: 250 }, (_, at) => `flow f${at}\n  if $a > ${at}\n    await TAction()\n`).join('');
  const sources = [{ file: 'policy.co', text: `${warned}flow last\n  await no such flow\n  await TAction()\n` }];
  await assert.rejects(start({ id: 'lost', sources, problems: [], decides: [] }), /policy\.co:752:/);
});
