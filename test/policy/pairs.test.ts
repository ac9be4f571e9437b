import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { STEPS } from '../../policy/check.ts';
import { answer } from './decision-vectors.ts';
import type { World, WorldConfirmation, WorldTool } from './world.ts';

/** A write that every row lets through, by a host that says where its argument came from. */
const CALL: World = {
  agents: { desk: {} },
  tools: {
    'shop/read': {},
    'shop/hold': {
      writes: true,
      confirm: 'reasons',
      undo: { tool: 'shop/release', with: { sku: 'arguments.sku' } },
      input: { type: 'object', properties: { sku: { type: 'string' } } },
    },
    'shop/release': {
      writes: true,
      confirm: 'reasons',
      undo: 'none',
      input: { type: 'object', properties: { sku: { type: 'string' } } },
    },
  },
  caller: { host: true },
  past: [
    { tool: 'shop/hold', arguments: { sku: 'S1' }, outcome: 'ran' },
    { tool: 'shop/release', decision: 'confirm' },
  ],
  call: { tool: 'shop/release', arguments: { sku: 'S1' }, origins: { sku: 'reply' } },
};

/** The same as an undo, which row 12 allows. */
const UNDO: World = { ...CALL, call: { ...CALL.call, undoes: 0 } };

/** What makes each row answer. Each changes members of its own, so that two can be put together. */
const FAULTS: Readonly<Record<string, (world: World) => World>> = {
  catalogue: (world) => ({ ...world, settings: { ...world.settings, lapsed: 'writes' } }),
  history: (world) => ({ ...world, fault: { fault: 'signature', entry: 0 } }),
  schema: (world) => withSku(world, { minLength: 12 }),
  destination: (world) => withValue(world, 'a@b.example'),
  order: (world) => withTool(world, { not_after: ['shop/hold'] }),
  undo: (world) => ({ ...world, call: { ...world.call, undoes: 7 } }),
  conditions: (world) => ({ ...world, conditions: { reason: 'limit_reached' } }),
  rulebook: (world) => ({ ...world, rulebook: { reason: 'deny' } }),
  taint: (world) => ({
    ...world,
    settings: { ...world.settings, taint_policy: 'refuse' },
    call: { ...world.call, labels: { call: ['untrusted:web'] } },
  }),
  confirmation: (world) => ({ ...world, confirmation: coveringConfirmation(world) }),
  person: (world) => withTool(world, { confirm: 'always' }),
  compensation: (world) => world,
  allow: (world) => world,
};

/** Pairs that no call can fail both of, and why. */
const NEVER_BOTH: Readonly<Record<string, string>> = {
  'undo compensation': 'row 12 answers for what row 6 bound alone, and row 6 refuses what it does not bind',
  'conditions compensation': 'row 7 looks at no undo that is bound, and row 12 answers for no other call',
  'rulebook compensation': 'row 8 refuses no undo that is bound, and row 12 answers for no other call',
  'taint allow': 'row 11 asks about every label that row 9 refuses for',
};

function withTool(world: World, words: WorldTool): World {
  return { ...world, tools: { ...world.tools, 'shop/release': { ...world.tools['shop/release'], ...words } } };
}

function withSku(world: World, words: Readonly<Record<string, number>>): World {
  const input = { type: 'object', properties: { sku: { type: 'string', ...words } } };
  return withTool(world, { input });
}

/** The value in the call and in the step that it may undo, whose undo binds it. */
function withValue(world: World, sku: string): World {
  const [held, ...rest] = world.past ?? [];
  assert.ok(held !== undefined);
  return {
    ...world,
    past: [{ ...held, arguments: { sku } }, ...rest],
    call: { ...world.call, arguments: { sku } },
  };
}

function coveringConfirmation({ call }: World): WorldConfirmation {
  return {
    step: 1,
    tool: call.tool,
    agent: 'desk',
    arguments: call.arguments ?? {},
    origins: call.origins ?? {},
    reasons: ['gate_clarify', 'tainted_call', 'write'],
    labels: call.labels?.['call'] ?? [],
    ...(call.undoes === undefined ? {} : { undoes: call.undoes }),
  };
}

/** The base world with the faults of some rows; a confirmation comes last, since it covers what the others made of the call. */
function worldWith(...rows: readonly string[]): World {
  const ordered = [...rows].sort((a, b) => Number(a === 'confirmation') - Number(b === 'confirmation'));
  const ofUndo = rows.includes('compensation');
  let world = ofUndo ? UNDO : CALL;
  for (const row of ordered) {
    const fault = ofUndo && row === 'person' ? ask : FAULTS[row];
    assert.ok(fault !== undefined, `\`${row}\` has no fault`);
    world = fault(world);
  }
  return world;
}

/** Of an undo that a host sends, the rulebook's question is all that row 11 asks. */
function ask(world: World): World {
  return { ...world, rulebook: { question: 'sure?' } };
}

test('every row has its fault', () => {
  assert.deepEqual(
    Object.keys(FAULTS),
    STEPS.map((step) => step.name),
  );
});

describe('a call that one row answers', () => {
  for (const { name } of STEPS) {
    test(`is answered by \`${name}\``, () => assert.equal(answer(worldWith(name)).step, name));
  }
});

describe('a call that two rows answer stops at the first', () => {
  for (const [index, { name: first }] of STEPS.entries()) {
    const withoutFirst = STEPS.filter((step) => step.name !== first);
    for (const { name: second } of STEPS.slice(index + 1)) {
      const world = worldWith(first, second);
      const never = NEVER_BOTH[`${first} ${second}`];
      if (never !== undefined) {
        test(`\`${first}\` and \`${second}\` never both: ${never}`, () => {
          const both = answer(world).step === first && answer(world, withoutFirst).step === second;
          assert.equal(both, false);
        });
        continue;
      }
      test(`\`${first}\` before \`${second}\``, () => {
        assert.equal(answer(world).step, first);
        // The second answers the call too, where the first is not asked. Without row 1 no row has a tool to look at.
        if (first !== 'catalogue') assert.equal(answer(world, withoutFirst).step, second);
      });
    }
  }
});
