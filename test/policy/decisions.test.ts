import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkCall, STEPS } from '../../policy/check.ts';
import { reasonCode, statusOf } from '../../policy/reasons.ts';
import { buildWorld } from './build-world.ts';
import { answer, assertAnswer, readCases } from './decision-vectors.ts';
import { parseWorld } from './parse-world.ts';

const CASES = readCases();

describe('the calls that the vectors start from are allowed', () => {
  for (const { id, file, world, expect } of CASES.filter((each) => each.isBase)) {
    test(`${file}: ${id}`, () => {
      assert.equal(expect.decision, 'allow');
      assertAnswer(answer(world), expect);
    });
  }
});

describe('one change away from an allowed call', () => {
  for (const { id, world, expect } of CASES.filter((each) => !each.isBase)) {
    test(id, () => assertAnswer(answer(world), expect));
  }
});

test('no two vectors have one id', () => {
  const ids = CASES.filter((each) => !each.isBase).map((each) => each.id);
  assert.equal(new Set(ids).size, ids.length);
});

test('every reason that a row can answer is answered by it in some vector', () => {
  const answered = new Set<string>();
  for (const { expect } of CASES)
    for (const reason of expect.reasons) answered.add(`${expect.step} ${reasonCode(reason)}`);
  const missing = STEPS.flatMap(({ name, reasons }) =>
    reasons.map((reason) => `${name} ${reason}`).filter((each) => !answered.has(each)),
  );
  assert.deepEqual(missing, []);
});

test('a row answers no decision or reason but those that it lists', () => {
  for (const { id, world } of CASES) {
    const verdict = answer(world);
    const row = STEPS.find((step) => step.name === verdict.step);
    assert.equal(verdict.decision, row?.answers, id);
    for (const reason of verdict.reasons) assert.ok(row?.reasons.includes(reasonCode(reason)), `${id}: ${reason}`);
  }
});

test('a proxied answer has the status of its decision, whatever the reason is called', () => {
  for (const { id, world } of CASES) {
    const { decision, reasons } = answer(world);
    for (const reason of reasons)
      assert.equal(statusOf(decision, reason), { allow: 200, confirm: 428, refuse: 403 }[decision], id);
  }
});

for (const dropped of STEPS) {
  test(`without the row \`${dropped.name}\` some vector is answered otherwise`, () => {
    const rest = STEPS.filter((step) => step !== dropped);
    const differs = CASES.some(({ world, expect }) => {
      const { decision, reasons, step } = answer(world, rest);
      return decision !== expect.decision || step !== expect.step || reasons.join() !== expect.reasons.join();
    });
    assert.ok(differs);
  });
}

test('the same snapshot and call are answered the same, however often', () => {
  for (const { id, world } of CASES) {
    const { snapshot, call } = buildWorld(world);
    const first = checkCall(snapshot, call);
    assert.deepEqual(checkCall(snapshot, call), first, id);
    const { tool: one, ...rest } = first;
    const { tool: other, ...again } = answer(world);
    assert.deepEqual(again, rest, id);
    assert.equal(other?.id, one?.id);
  }
});

describe('the check never fails open', () => {
  const base = CASES.find((each) => each.isBase);
  assert.ok(base !== undefined);

  for (const [index, thrower] of STEPS.entries()) {
    test(`a row \`${thrower.name}\` that throws refuses with internal_error`, () => {
      const fault = new Error('broken');
      const broken = STEPS.with(index, {
        ...thrower,
        run: () => {
          throw fault;
        },
      });
      const verdict = answer(base.world, broken);
      assert.deepEqual(
        [verdict.decision, verdict.reasons, verdict.step],
        ['refuse', ['internal_error'], 'internal_error'],
      );
      assert.equal(verdict.error, fault);
    });
  }

  test('a gate that throws refuses with internal_error', () => {
    const { snapshot, call } = buildWorld(base.world);
    const fails = (): never => {
      throw new Error('broken');
    };
    for (const broken of [
      { ...snapshot, step7: fails },
      { ...snapshot, step8: fails },
    ]) {
      const verdict = checkCall(broken, call);
      assert.deepEqual([verdict.decision, verdict.reasons], ['refuse', ['internal_error']]);
    }
  });

  test('a table that answers nothing refuses with internal_error', () => {
    for (const steps of [[], STEPS.slice(0, 1)]) {
      const verdict = answer(base.world, steps);
      assert.deepEqual([verdict.decision, verdict.reasons], ['refuse', ['internal_error']]);
    }
  });
});

test('a world with a member that nothing reads is an error', () => {
  const base = CASES[0]?.world;
  assert.ok(base !== undefined);
  assert.throws(() => parseWorld({ ...base, extra: 1 } as never), /not a world: `\/extra`/);
  assert.throws(() => parseWorld({ ...base, call: { ...base.call, orgins: {} } } as never), /`\/call\/orgins`/);
});
