import fc from 'fast-check';
import type { JsonObject } from '../../receipts/json-value.ts';
import { labelsOfCall, reasonsOfCall } from './oracle.ts';
import {
  NOW_MS,
  type World,
  type WorldCall,
  type WorldConfirmation,
  type WorldEntry,
  type WorldTool,
} from './world.ts';

const IDS = ['s/a', 's/b', 't/a', 't/c'] as const;
const FIELDS = ['x', 'n'] as const;
const LABELS = ['untrusted:a', 'untrusted:web', 'agent:high', 'agent:low'] as const;
const RUNS = ['r-1', 'r-2'] as const;

const PROPERTIES: JsonObject = { x: { type: 'string' }, n: { type: 'number' } };
const INPUTS: readonly JsonObject[] = [
  { type: 'object', properties: PROPERTIES },
  { type: 'object', properties: PROPERTIES, required: ['x'] },
  { type: 'object', properties: { n: { type: 'number' }, x: { type: 'string', format: 'moon-phase' } } },
];

const id = fc.constantFrom(...IDS);
const agent = fc.constantFrom('low', 'high');
const labels = fc.subarray([...LABELS], { maxLength: 2 });
/** Absent more often than not, so that most members of most worlds are their defaults. */
function rarely<T>(arbitrary: fc.Arbitrary<T>, weight = 5): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
}

const values: fc.Arbitrary<JsonObject> = fc
  .record({
    x: rarely(fc.constantFrom('A', 'B', 'a@b.example'), 1),
    n: rarely(fc.constantFrom(1, 2), 1),
    y: rarely(fc.constant(1), 30),
  })
  .map(compact);

const tool: fc.Arbitrary<WorldTool> = fc
  .record({
    input: fc.constantFrom(...INPUTS),
    writes: fc.constantFrom(false, true, true),
    irreversible: rarely(fc.constant(true)),
    sends_out: rarely(fc.constant(true), 1),
    reads_outside: rarely(fc.constant(true)),
    privilege: rarely(fc.constant(100)),
    agents: rarely(fc.subarray(['low', 'high']), 8),
    confirm: fc.constantFrom('always', 'reasons', 'reasons'),
    after: rarely(
      fc.array(fc.record({ tool: id, bind: rarely(fc.constant({ x: 'x' }), 1) }).map(compact), { maxLength: 2 }),
      6,
    ),
    not_after: rarely(fc.array(fc.constantFrom(...IDS, 'untrusted'), { maxLength: 2 }), 8),
    at_most: rarely(fc.constantFrom(1, 2), 6),
    undo: fc.oneof(
      fc.constantFrom(undefined, 'none'),
      fc.record({
        tool: id,
        with: fc.constantFrom({ x: 'arguments.x' }, { x: 'result.x' }, { x: 'arguments.x', n: 'result.n' }, {}),
        safe: fc.boolean(),
      }),
    ),
    pin: rarely(fc.constant('changed'), 25),
  })
  .map(compact);

const entry: fc.Arbitrary<WorldEntry> = fc
  .record({
    tool: id,
    agent,
    arguments: values,
    decision: fc.constantFrom('allow', 'allow', 'allow', 'confirm', 'refuse'),
    labels: rarely(labels),
    run: rarely(fc.constantFrom(...RUNS), 1),
    undoes: rarely(fc.nat(2), 3),
    outcome: fc.constantFrom(undefined, 'ran', 'ran', 'ran', 'failed', 'outcome_unknown'),
    believed: rarely(fc.constant(false)),
    result: rarely(values, 1),
  })
  .map(compact);

const origin = fc.constantFrom(
  'typed',
  'reply',
  'model',
  'computed',
  'other',
  'result:0.x',
  'result:1.n',
  'result:1.x',
  'result:0',
  'result:9.x',
);

const call: fc.Arbitrary<WorldCall> = fc
  .record({
    tool: fc.oneof({ weight: 9, arbitrary: id }, { weight: 1, arbitrary: fc.constantFrom('a', 'c', 'none', 's/none') }),
    agent: fc.constantFrom(undefined, 'low', 'high', 'high', 'nobody'),
    arguments: values,
    origins: fc.record({ x: rarely(origin, 1), n: rarely(origin, 1) }).map(compact),
    turns: rarely(fc.constantFrom(['A 1'], ['B', 'A 2'], ['AB 12']), 1),
    labels: rarely(fc.record({ call: labels, x: labels })),
    filled: rarely(fc.subarray([...FIELDS])),
    run: rarely(fc.constantFrom(...RUNS), 1),
    undoes: rarely(fc.nat(3), 2),
    engine: rarely(fc.constant(true)),
  })
  .map(compact);

const bare: fc.Arbitrary<World> = fc
  .record({
    agents: fc.constantFrom({ low: {}, high: { privilege: 100 } }, { low: {}, high: {} }),
    tools: fc
      .tuple(tool, tool, tool, tool)
      .map((tools) => Object.fromEntries(IDS.map((each, at) => [each, tools[at] ?? {}]))),
    settings: rarely(
      fc
        .record({
          taint_policy: fc.constantFrom('refuse', 'confirm'),
          lapsed: rarely(fc.constantFrom('writes', 'all'), 9),
        })
        .map(compact),
      1,
    ),
    caller: fc.record({ host: fc.boolean(), agents: fc.constantFrom(['low', 'high'], ['high'], ['low', 'high']) }),
    carried: rarely(
      fc.record({ tools: fc.dictionary(id, fc.nat(1), { maxKeys: 1 }), labels: fc.constantFrom([], ['untrusted:a']) }),
    ),
    past: fc.array(entry, { maxLength: 4 }).map(undoneOnce),
    ended_runs: rarely(fc.constant(['r-1'])),
    fault: rarely(fc.constant({ fault: 'dropped' }), 20),
    call,
    conditions: rarely(fc.constant({ reason: 'limit_reached' }), 8),
    rulebook: rarely(fc.constantFrom({ reason: 'deny' }, { question: 'sure?' }), 5),
  })
  .map(compact);

/** A small world; every second call of one that has a past comes with a confirmation, most of which cover it. */
export const RANDOM_WORLD: fc.Arbitrary<World> = fc
  .tuple(bare, rarely(fc.tuple(fc.nat(3), fc.nat(16), fc.boolean()), 1))
  .map(([world, tweak]) => (tweak === undefined ? undoFitted(world) : withConfirmation(undoFitted(world), ...tweak)));

function withConfirmation(world: World, back: number, flaw: number, untilWrite: boolean): World {
  if (flaw === 16) return { ...world, confirmation: 'invalid' };
  const { call: given, past = [] } = world;
  const named = world.caller.agents ?? [];
  const covering: WorldConfirmation = {
    step: Math.max(past.length - 1 - (untilWrite ? back : 0), 0),
    tool: given.tool,
    agent: given.agent ?? (named.length === 1 ? (named[0] ?? '') : ''),
    arguments: given.arguments ?? {},
    origins: given.origins ?? {},
    reasons: reasonsOfCall(world),
    labels: labelsOfCall(world),
    point: untilWrite ? 'until_write' : 'exact',
    ...(given.run === undefined ? {} : { run: given.run }),
    ...(given.undoes === undefined ? {} : { undoes: given.undoes }),
  };
  return { ...world, confirmation: { ...covering, ...FLAWS[flaw] } };
}

const FLAWS: readonly Partial<WorldConfirmation>[] = [
  { expires: NOW_MS },
  { expires: NOW_MS, spent: true },
  { arguments: { x: 'Z' } },
  { origins: { x: 'typed' } },
  { tool: 's/b', spent: true },
  { agent: 'low' },
  { reasons: ['write'] },
  { labels: ['untrusted:a'] },
  { run: 'r-1' },
  { undoes: 1 },
  { spent: true },
  { link: 'link-of-a-fork' },
];

/** Where the call undoes a step: mostly by the tool and with the arguments that the step declares. */
function undoFitted(world: World): World {
  const { undoes, turns } = world.call;
  const step = undoes === undefined ? undefined : world.past?.[undoes];
  const undo = step === undefined ? undefined : world.tools[step.tool]?.undo;
  // A few are left as they came out.
  if (step === undefined || typeof undo !== 'object' || turns?.[0] === 'AB 12') return world;
  const bound = Object.entries(undo.with).map(([name, source]) => {
    const [from, field = ''] = source.split('.');
    return [name, (from === 'arguments' ? step.arguments : step.result)?.[field]] as const;
  });
  const { filled: _, ...rest } = world.call;
  return { ...world, call: { ...rest, tool: undo.tool, arguments: compact(Object.fromEntries(bound)) as JsonObject } };
}

/** Only an allowed step that is no undo is undone, and once: what the gateway lets into a history. */
function undoneOnce(past: readonly WorldEntry[]): readonly WorldEntry[] {
  const undone = new Set<number>();
  return past.map((each, at) => {
    const { undoes, ...rest } = each;
    const step = undoes === undefined ? undefined : past[undoes];
    if (undoes === undefined || step === undefined || undoes >= at || undone.has(undoes)) return rest;
    if ((step.decision ?? 'allow') !== 'allow' || step.undoes !== undefined) return rest;
    undone.add(undoes);
    return each;
  });
}

/** Without the members that are undefined. */
function compact<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
