import type { Decision } from '../../receipts/history.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { BadAnswer, NoTruthValue } from './errors.ts';
import { asObject, optionalNumber, optionalText, textList, textOf } from './members.ts';

/** What a person's yes is asked with. */
export interface Question {
  readonly id: string;
  /** For a host whose gateway hands it the token: sent with the same call once its person said yes. */
  readonly token: string | undefined;
  /** Milliseconds since 1970. */
  readonly expires: number | undefined;
  /** Where an approver decides it, where the gateway keeps it. */
  readonly approveAt: string | undefined;
}

/**
 * One answer of the check (qls-tool-check/1). It has **no truth value**: every object of JavaScript is true, so that
 * `if (check)` would let a refusal through. `decision` is the only way to read it. See {@link Checked} for what stops the rest.
 */
export class Check {
  readonly decision: Decision;
  /** The first of `reasons`. */
  readonly reason: string;
  readonly reasons: readonly string[];
  /** JSON pointer of the argument at fault, with `argument_schema` alone. */
  readonly pointer: string | undefined;
  readonly detail: JsonObject;
  /** What to show or tell: for a confirm what a person must see, else what is wrong and what to do. */
  readonly sentence: string;
  readonly tool: string;
  readonly agent: string;
  readonly session: string;
  readonly step: number;
  /** On `allow` of a write: the key that whoever runs the call should send its backend. */
  readonly idempotencyKey: string | undefined;
  /** On `confirm`: what to ask with. */
  readonly confirmation: Question | undefined;
  readonly #answer: JsonObject;

  constructor(value: JsonValue | undefined) {
    const answer = asObject(value, 'the check');
    if (answer['format'] !== 'qls-tool-check/1') throw new BadAnswer('the answer is no qls-tool-check/1', answer);
    const decision = answer['decision'];
    if (decision !== 'allow' && decision !== 'confirm' && decision !== 'refuse') {
      throw new BadAnswer('the check has no decision that is known here', answer);
    }
    this.#answer = answer;
    this.decision = decision;
    this.reason = textOf(answer, 'reason');
    this.reasons = textList(answer, 'reasons');
    this.pointer = optionalText(answer, 'pointer');
    this.detail = asObject(answer['detail'] ?? {}, 'the detail of the check');
    this.sentence = optionalText(answer, 'sentence') ?? '';
    this.tool = textOf(answer, 'tool');
    this.agent = optionalText(answer, 'agent') ?? '';
    this.session = textOf(answer, 'session');
    this.step = optionalNumber(answer, 'step') ?? 0;
    this.idempotencyKey = optionalText(answer, 'idempotency_key');
    this.confirmation = readQuestion(answer['confirmation']);
  }

  /** The answer as it came. */
  toJSON(): JsonObject {
    return this.#answer;
  }

  /** Called by every coercion to a number or a text (ECMA-262 section 7.1.1), `==` with a boolean among them. Throws `NoTruthValue`. */
  [Symbol.toPrimitive](): never {
    throw new NoTruthValue();
  }
}

function readQuestion(value: JsonValue | undefined): Question | undefined {
  if (value === undefined) return undefined;
  const question = asObject(value, 'the confirmation');
  return {
    id: textOf(question, 'id'),
    token: optionalText(question, 'token'),
    expires: optionalNumber(question, 'expires'),
    approveAt: optionalText(question, 'approve_at'),
  };
}

/**
 * A check as sessions give it. The call signature is nothing that it has: it makes TypeScript refuse `if (check)`,
 * `check && run()` and `check ? a : b` where what follows does not use the check (TS2774), as it does for a function that
 * somebody forgot to call. Comparing it with a boolean is refused too (TS2367). What the types cannot see throws
 * `NoTruthValue` when it runs: `check == true`, `check + ''`, `` `${check}` ``, `+check`, `check > 0`. Two things neither
 * can stop, since the language asks no object about them: `!check` and `Boolean(check)`.
 */
export type Checked = Check & ((notABoolean: never) => never);

/** An answer of the gateway in, typed so that it cannot be taken for a boolean. Throws `BadAnswer`. */
export function readCheck(value: JsonValue | undefined): Checked {
  // The call signature exists for the compiler alone; see `Checked`.
  return new Check(value) as Checked;
}
