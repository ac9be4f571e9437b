import { performance } from 'node:perf_hooks';
import type { Call, Snapshot } from '../../policy/call.ts';
import { makeCatalogue } from '../../policy/catalogue.ts';
import { checkCall } from '../../policy/check.ts';
import { compileSchema } from '../../policy/schema/compile.ts';
import { appendToView, openView, reportToView, type SessionView } from '../../policy/session.ts';
import type { Tool } from '../../policy/tool.ts';

/** What the check alone costs, in microseconds of CPU a call, by how long the held history is. */
export function measureCheck(lengths: readonly number[]): readonly { readonly entries: number; readonly us: number }[] {
  return lengths.map((entries) => ({ entries, us: measure(snapshotOf(entries)) }));
}

const WARM_UP = 20_000;
const CALLS = 50_000;
const ROUNDS = 5;

function measure(snapshot: Snapshot): number {
  const base = aCall();
  // New turns for each call, as requests bring them: nothing that was made of them before is of use again.
  const next = (): Call => ({ ...base, turns: ['charge 40.00 for order 4411'] });
  for (let i = 0; i < WARM_UP; i++) checkCall(snapshot, next());
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    for (let i = 0; i < CALLS; i++) {
      if (checkCall(snapshot, next()).decision !== 'confirm') throw new Error('the measured call is not what it was');
    }
    const used = process.cpuUsage(before);
    best = Math.min(best, (used.user + used.system) / CALLS);
  }
  return best;
}

function snapshotOf(entries: number): Snapshot {
  const read = aTool('get_order', false);
  const write = aTool('charge_card', true, [{ tool: 'shop/get_order' }]);
  let view: SessionView = openView();
  for (let step = 0; step < entries; step++) {
    view = appendToView(view, { step, tool: read, decision: 'allow', labels: [] });
    view = reportToView(view, { tool: read, before: undefined, after: 'ran' });
  }
  return {
    catalogue: makeCatalogue([read, write], [{ name: 'desk', privilege: 0, defaults: {} }]),
    settings: { language: 'en', taintPolicy: 'confirm' },
    session: { id: 's', view, head: { step: entries - 1, link: 'x' } },
    steps: new Map(),
    policy: 'p',
    digests: { arguments: 'a', origins: 'o' },
    nowMs: performance.now(),
    step7: () => undefined,
    step8: () => undefined,
  };
}

function aTool(name: string, writes: boolean, after: Tool['after'] = []): Tool {
  const input = compileSchema({
    type: 'object',
    properties: { order_id: { type: 'string' }, amount: { type: 'number' } },
    required: ['order_id'],
  });
  return {
    id: `shop/${name}`,
    server: 'shop',
    name,
    description: '',
    input,
    writes,
    irreversible: false,
    idempotent: false,
    sendsOut: false,
    readsOutside: false,
    subjectArguments: [],
    confidential: false,
    privilege: 0,
    agents: new Set(['desk']),
    confirm: 'always',
    after,
    notAfter: [],
    restores: false,
    argumentKinds: {},
    defaults: {},
    watched: [],
  };
}

function aCall(): Call {
  return {
    tool: 'shop/charge_card',
    arguments: { order_id: '4411', amount: 40 },
    caller: { name: 'shop-app', host: true, agents: new Set(['desk']) },
    agent: 'desk',
    filled: new Set(),
    faults: [],
    origins: { order_id: 'typed', amount: 'typed' },
    turns: ['charge 40.00 for order 4411'],
    labels: {},
    context: {},
    fromEngine: false,
  };
}
