import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { openStore } from '../../gateway/store/open.ts';
import { startBackend } from './backend.ts';
import { type GatewayProcess, makeFolder } from './process.ts';
import { call, until, worldConfig } from './world.ts';

export interface Found {
  /** What must not be, a sentence each. */
  readonly faults: readonly string[];
  readonly counts: Counts;
}

/** What the store says of the calls, and what the backend did. */
interface Counts {
  kills: number;
  calls: number;
  ran: number;
  failed: number;
  unknown: number;
  /** Effects at the backend. */
  effects: number;
  /** Those of them whose call is listed as unknown; the others are the effects of what ran. */
  unknown_effects: number;
}

const CLIENTS = 8;

/**
 * Kills a gateway again and again while clients write through it, each write in a session of its own; then compares what
 * the backend did with what the store says.
 */
export async function killUnderLoad(store: Record<string, unknown>, kills: number): Promise<Found> {
  const backend = await startBackend();
  const folder = await makeFolder(worldConfig(backend.url, { sessions: { max: 1_000_000 }, ...store }));
  const start = (): Promise<GatewayProcess> => folder.start({ leaseMs: 1_500 });
  /** The gateway, or the next one on its way: who finds none waits for it, and does not ask again and again. */
  let up = start();
  let made = 0;
  let answered = 0;
  let ending = false;
  const tools = new Map<string, string>();
  /** What a client was told has run. */
  const told = new Set<string>();
  const client = async (): Promise<void> => {
    while (!ending) {
      const order = `o-${made++}`;
      const tool = made % 2 === 0 ? 'charge' : 'book';
      const members = { session: order, idempotency_key: `k-${order}` };
      const { url } = await up;
      tools.set(order, tool);
      await call(url, tool, { order }, members).then(
        ({ json }) => {
          answered += 1;
          if (json.outcome === 'ran') told.add(order);
        },
        () => undefined,
      );
    }
  };
  const killer = async (): Promise<void> => {
    try {
      for (let kill = 0; kill < kills; kill++) {
        const gateway = await up;
        const enough = answered + 1 + Math.random() * 40;
        await until('calls are answered', async () => (answered > enough ? true : undefined), 60_000);
        await pause(Math.random() * 30);
        up = gateway.kill().then(start);
      }
      await up;
    } finally {
      ending = true;
    }
  };
  try {
    await Promise.all([killer(), ...Array.from({ length: CLIENTS }, client)]);
    const place = 'store' in store ? String(store['store']) : join(folder.folder, 'toolgate.db');
    const gateway = await up;
    await untilQuiet(gateway.url);
    await gateway.stop();
    return await compare(place, backend, { kills, tools, told });
  } finally {
    ending = true;
    await folder.remove();
    await backend.close();
  }
}

/** Waits until no call is on its way any more. */
async function untilQuiet(url: string): Promise<void> {
  const listed = async (state: string): Promise<number> => {
    const response = await fetch(`${url}/v1/outcomes?state=${state}`, { headers: { authorization: 'Bearer ana-key' } });
    return ((await response.json()) as { outcomes: unknown[] }).outcomes.length;
  };
  await until(
    'every call has an outcome',
    async () => {
      const open = (await listed('claimed')) + (await listed('sending'));
      return open === 0 ? true : undefined;
    },
    30_000,
  );
}

interface Load {
  readonly kills: number;
  readonly tools: ReadonlyMap<string, string>;
  readonly told: ReadonlySet<string>;
}

async function compare(
  place: string,
  backend: Awaited<ReturnType<typeof startBackend>>,
  { kills, tools, told }: Load,
): Promise<Found> {
  const store = await openStore(place);
  const faults: string[] = [];
  const counts: Counts = { kills, calls: 0, ran: 0, failed: 0, unknown: 0, effects: 0, unknown_effects: 0 };
  const effects = new Map<string, number>();
  for (const { body } of backend.done) {
    const order = String(body['order']);
    effects.set(order, (effects.get(order) ?? 0) + 1);
  }
  const recorded = new Set<string>();
  try {
    for (const state of ['claimed', 'sending', 'ran', 'failed', 'outcome_unknown'] as const) {
      for (const claim of await store.listClaims(state, 1_000_000)) {
        const order = (await store.findSessionById(claim.sid))?.session ?? '';
        const did = effects.get(order) ?? 0;
        const [step] = await store.findSteps(claim.sid, [claim.step]);
        recorded.add(order);
        counts.calls += 1;
        if (told.has(order) && state !== 'ran') faults.push(`${order} was told as ran and is recorded as ${state}`);
        if (state === 'claimed' || state === 'sending') faults.push(`${order} has no outcome (${state})`);
        if (state === 'ran') {
          counts.ran += 1;
          if (did !== 1) faults.push(`${order} is recorded as ran and has ${did} effects`);
        }
        if (state === 'failed') {
          counts.failed += 1;
          if (did !== 0) faults.push(`${order} is recorded as failed and has ${did} effects`);
        }
        if (state === 'outcome_unknown') {
          counts.unknown += 1;
          counts.unknown_effects += did;
          if (claim.tool !== 'shop/book') faults.push(`${order} is unknown although its backend takes a key`);
        }
        if (step?.outcome !== state)
          faults.push(`${order} is ${state} by its claim and ${step?.outcome} in its history`);
      }
    }
  } finally {
    await store.close();
  }
  for (const order of told) if (!recorded.has(order)) faults.push(`${order} was told as ran and is not recorded`);
  counts.effects = backend.done.length;
  if (counts.effects !== counts.ran + counts.unknown_effects)
    faults.push(`the numbers differ: ${JSON.stringify(counts)}`);
  for (const [order, did] of effects) {
    if (did > 1) faults.push(`${order} (${tools.get(order)}) was done ${did} times`);
    if (!recorded.has(order)) faults.push(`${order} was done and nothing is recorded of it`);
  }
  return { faults: faults.slice(0, 20), counts };
}
