import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { checkCall } from '../../policy/check.ts';
import type { Step, Verdict } from '../../policy/verdict.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { buildWorld } from './build-world.ts';
import { parseVectorFile, parseWorld } from './parse-world.ts';
import type { Change, Expected, World } from './world.ts';

const FOLDER = new URL('../vectors/decisions/', import.meta.url);
const SHOP = 'shop.json';

/** A call and what it must be answered: a base, or a base with one thing changed. */
export interface DecisionCase {
  readonly id: string;
  readonly file: string;
  readonly isBase: boolean;
  readonly world: World;
  readonly expect: Expected;
}

/** Every case of the vectors, bases first in each file. */
export function readCases(): readonly DecisionCase[] {
  const shop = JSON.parse(readFileSync(new URL(SHOP, FOLDER), 'utf8')) as JsonObject;
  const cases: DecisionCase[] = [];
  for (const file of readdirSync(FOLDER).filter((name) => name.endsWith('.json') && name !== SHOP)) {
    const { worlds, vectors } = parseVectorFile(readFileSync(new URL(file, FOLDER), 'utf8'));
    const bases = new Map<string, JsonObject>();
    for (const [name, { world, expect }] of Object.entries(worlds)) {
      const base = { ...shop, ...world, tools: { ...objectOf(shop['tools']), ...objectOf(world['tools'] ?? {}) } };
      bases.set(name, base);
      cases.push({ id: name, file, isBase: true, world: parseWorld(base), expect });
    }
    for (const { id, world, change, expect } of vectors) {
      const base = bases.get(world);
      if (base === undefined) throw new Error(`${file}: \`${id}\` changes \`${world}\`, which is no world of the file`);
      cases.push({ id, file, isBase: false, world: parseWorld(changed(base, change)), expect });
    }
  }
  return cases;
}

/** The value with one change made. Throws where the place is not there, or already as it would become. */
function changed(value: JsonObject, change: Change): JsonObject {
  const copy = structuredClone(value) as Record<string, JsonValue>;
  const path = change.at
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  const last = path.pop() ?? '';
  let at = copy;
  for (const name of path) at = objectOf(at[name]) as Record<string, JsonValue>;
  if ('remove' in change) {
    if (!Object.hasOwn(at, last)) throw new Error(`\`${change.at}\` is not there`);
    delete at[last];
  } else {
    assert.notDeepEqual(at[last], change.set, `\`${change.at}\` is so already`);
    at[last] = change.set;
  }
  return copy;
}

function objectOf(value: JsonValue | undefined): JsonObject {
  if (typeof value !== 'object' || value === null) throw new Error('a change leads through what is no object');
  return value as JsonObject;
}

/** The answer to a case, by the table or by another one. */
export function answer(world: World, steps?: readonly Step[]): Verdict {
  const { snapshot, call } = buildWorld(world);
  return checkCall(snapshot, call, steps);
}

/**
 * Compares an answer with what is expected of it: decision, row, reasons, pointer and waived reasons exactly; the detail of a
 * refusal exactly but for the list of schema errors; of a confirm what is named; labels where they are named.
 */
export function assertAnswer(verdict: Verdict, expect: Expected): void {
  const { decision, step, reasons, pointer, waived } = verdict;
  const { pointer: wantPointer, waived: wantWaived } = expect;
  assert.deepEqual(
    { decision, step, reasons, pointer, waived },
    { decision: expect.decision, step: expect.step, reasons: expect.reasons, pointer: wantPointer, waived: wantWaived },
  );
  if (expect.labels !== undefined) assert.deepEqual(verdict.labels, expect.labels);
  if (decision === 'confirm') {
    const shown = verdict.detail ?? {};
    const named = Object.keys(expect.detail ?? {});
    assert.deepEqual(Object.fromEntries(named.map((name) => [name, shown[name]])), expect.detail ?? {});
    if (!named.includes('confirmation')) assert.equal(shown['confirmation'], undefined);
    return;
  }
  const { errors, ...detail } = verdict.detail ?? {};
  assert.equal(errors === undefined, step !== 'schema');
  assert.deepEqual(verdict.detail === undefined ? undefined : detail, expect.detail);
}
