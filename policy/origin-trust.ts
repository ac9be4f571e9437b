import type { JsonValue } from '../receipts/json-value.ts';
import type { Call, Snapshot } from './call.ts';
import { parseOrigin } from './origins/parse-origin.ts';
import type { Language } from './origins/typed-numbers.ts';
import { indexTurns, isTypedIn, type TypedIndex } from './origins/typed-values.ts';

/** Where a value came from, as far as the gateway believes it. */
export interface BelievedOrigin {
  /** What a person is shown. */
  readonly word: string;
  /** A write takes the value without asking. */
  readonly trusted: boolean;
  /** The earlier step whose result gave the value. */
  readonly step?: number;
}

const MODEL: BelievedOrigin = { word: 'model', trusted: false };
const FILLED: BelievedOrigin = { word: 'context', trusted: true };
const BOUND: BelievedOrigin = { word: 'computed', trusted: true };

/**
 * Settles the origin of one argument (docs/check.md, "Person"). What only a host may say counts as `model` from anyone
 * else; `typed` must stand in the person's turns; `result:<step>.<field>` must equal what was seen of that result.
 */
export function believeOrigin(name: string, value: JsonValue, call: Call, snapshot: Snapshot): BelievedOrigin {
  if (call.filled.has(name)) return FILLED;
  // Row 6 lets such a call no further unless its arguments are exactly those bound from the step that it undoes.
  if (call.fromEngine && call.undoes !== undefined) return BOUND;
  const claimed = Object.hasOwn(call.origins, name) ? call.origins[name] : undefined;
  if (claimed === undefined) return MODEL;
  const origin = parseOrigin(claimed);
  switch (origin.kind) {
    case 'typed':
      return call.caller.host && isTypedIn(value, indexOf(call.turns, snapshot.settings.language))
        ? { word: 'typed', trusted: true }
        : MODEL;
    case 'reply':
    case 'context':
    case 'computed':
      return call.caller.host ? { word: origin.kind, trusted: true } : MODEL;
    case 'result': {
      const step = snapshot.steps.get(origin.step);
      if (step === undefined) return MODEL;
      const seen = origin.field === undefined ? 'unseen' : step.compareField(origin.field, value);
      // What is known to be untrue is not shown to a person; its labels stay with the value all the same.
      if (seen === 'other') return { ...MODEL, step: origin.step };
      const declared = snapshot.catalogue.tools.get(step.toolId)?.result?.declares(origin.field ?? '') === true;
      const trusted = declared && seen === 'equal' && step.outcome === 'ran';
      return { word: claimed, trusted, step: origin.step };
    }
    default:
      return MODEL;
  }
}

const INDEXES = new WeakMap<readonly string[], TypedIndex>();

/** The index of a call's turns, made at the first argument that is said to be typed; a call has one language. */
function indexOf(turns: readonly string[], language: Language): TypedIndex {
  const known = INDEXES.get(turns);
  if (known !== undefined) return known;
  const index = indexTurns(turns, language);
  INDEXES.set(turns, index);
  return index;
}
