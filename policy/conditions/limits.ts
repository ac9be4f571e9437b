import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import type { GateRefusal } from '../call.ts';
import type { Usage } from './condition.ts';
import { addTexts, decimalText, isMore, sumDecimals } from './decimals.ts';
import { type Path, parsePath, readPath } from './path.ts';
import { isCalendar, isSliding, type Period, SLIDING_MS, type WindowOf } from './period.ts';

/** A limit as it is written: how many calls in a period. */
interface LimitSource {
  readonly count: number;
  readonly per: Period;
}

/** A limit of what is spent, as it is written. */
interface SpendSource {
  readonly field: string;
  readonly at_most: number | string;
  readonly per: Period;
  readonly pool?: string;
}

/** What one tool's limits are compiled from. */
export interface LimitsSource {
  /** The pair. */
  readonly tool: string;
  readonly limits: readonly LimitSource[];
  readonly spend: readonly SpendSource[];
  readonly currency?: string;
}

/** What limits of every tool are counted under. */
export interface LimitsSettings {
  readonly tenant: string;
  readonly windowOf: WindowOf;
  /** How long what an agent spent in one session counts in its next ones (docs/check.md, "Sessions"), in milliseconds. */
  readonly carryMs: number;
}

/** A call as limits see it. */
export interface CountedCall {
  readonly nowMs: number;
  readonly arguments: JsonObject;
  readonly caller: { readonly name: string; readonly host: boolean };
  readonly session: string;
  /** The store's id of the session, which no later session has; absent where the session is not kept. */
  readonly sid?: string;
  readonly run?: string;
}

/** Where amounts are counted in the store. The period is in the name, or slides. */
export interface Bucket {
  readonly name: string;
  /** Only amounts since then count (milliseconds since 1970); absent where the bucket is its period. */
  readonly sinceMs?: number;
  /** When the bucket counts for nothing any more. */
  readonly untilMs?: number;
  /** The session (`CountedCall.sid`) with which the bucket goes: nobody can ask for it any more once that is gone. */
  readonly sid?: string;
}

/** An amount to be reserved with the call. The store refuses it where the bucket's sum would pass `max`. */
export interface Reservation extends Bucket {
  /** Decimal texts. */
  readonly amount: string;
  readonly max: string;
  /** What is reserved: a place among the calls, or money. */
  readonly kind: 'call' | 'spend';
}

/** A limit whose count is one for all calls: of a sliding or calendar period. Those per run and session are many. */
export interface StandingLimit {
  readonly kind: 'call' | 'spend';
  readonly per: Period;
  /** Decimal text. */
  readonly max: string;
  readonly bucket: Bucket;
  readonly field?: string;
  readonly currency?: string;
  readonly pool?: string;
}

/** The limits of one tool. */
export interface CompiledLimits {
  /** What has to be counted before the call is checked. */
  readonly buckets: (call: CountedCall) => readonly Bucket[];
  /** @param sessionCalls calls of the tool that count in the session so far */
  readonly check: (call: CountedCall, usage: Usage, sessionCalls: number) => GateRefusal | undefined;
  /** What an allowed call reserves; nothing where it could not be counted, which `check` has refused before. */
  readonly reserve: (call: CountedCall) => readonly Reservation[];
  /** The limits that stand at a moment whoever calls, for showing what is used of them. */
  readonly standing: (nowMs: number) => readonly StandingLimit[];
}

/** One limit. */
interface Rule {
  readonly kind: 'call' | 'spend';
  readonly per: Period;
  readonly max: string;
  /** What stands before the period in the bucket's name. */
  readonly key: readonly string[];
  readonly told: JsonObject;
  readonly shown: Pick<StandingLimit, 'field' | 'currency' | 'pool'>;
  /** The amount of a call as decimal text; `undefined` where it cannot be read. */
  readonly amountOf: (args: JsonObject) => string | undefined;
}

/** Compiles the limits of a tool. Throws `ConditionFault` for a path that is none. */
export function compileLimits(source: LimitsSource, settings: LimitsSettings): CompiledLimits {
  const rules = [
    ...source.limits.map((limit) => callRule(source, limit)),
    ...source.spend.map((spend) => spendRule(source, spend)),
  ];
  const bucketsOf = (rule: Rule, call: CountedCall): readonly Bucket[] => placesOf(rule, call, settings);
  return {
    buckets: (call) => rules.flatMap((rule) => bucketsOf(rule, call)),
    check: (call, usage, sessionCalls) => {
      const own = new Map<string, string>();
      for (const rule of rules) {
        const refusal = checkRule(rule, call, usage, sessionCalls, own, settings);
        if (refusal !== undefined) return refusal;
      }
      return undefined;
    },
    standing: (nowMs) =>
      rules.flatMap(({ kind, per, max, key, shown }) => {
        const bucket = sharedBucket(settings, key, per, nowMs);
        return bucket === undefined ? [] : [{ kind, per, max, bucket, ...shown }];
      }),
    reserve: (call) =>
      rules.flatMap((rule) => {
        const amount = rule.amountOf(call.arguments);
        if (amount === undefined || amount === '0') return [];
        return bucketsOf(rule, call).map((bucket) => ({ ...bucket, amount, max: rule.max, kind: rule.kind }));
      }),
  };
}

/** @param own what earlier rules of this call put into the buckets; grows by what this rule puts there */
function checkRule(
  rule: Rule,
  call: CountedCall,
  usage: Usage,
  sessionCalls: number,
  own: Map<string, string>,
  settings: LimitsSettings,
): GateRefusal | undefined {
  const { kind, per, max, told } = rule;
  const amount = rule.amountOf(call.arguments);
  if (amount === undefined) return { reason: 'spend_unknown', detail: told };
  if (per === 'run' && call.run === undefined) return { reason: 'usage_unknown', detail: told };
  const reached = (detail: JsonObject): GateRefusal => ({
    reason: kind === 'call' ? 'limit_reached' : 'spend_exceeded',
    detail,
  });
  if (isMore(amount, max)) return reached(told);
  if (kind === 'call' && per === 'session') {
    return isMore(addTexts(String(sessionCalls), amount), max) ? reached(told) : undefined;
  }
  for (const bucket of placesOf(rule, call, settings)) {
    const counted = usage === 'unknown' ? undefined : usage.counted.get(bucket.name);
    if (counted === undefined) return { reason: kind === 'call' ? 'usage_unknown' : 'spend_unknown', detail: told };
    const sum = addTexts(addTexts(counted, own.get(bucket.name) ?? '0'), amount);
    if (isMore(sum, max)) return reached(isCalendar(per) ? { ...told, until: bucket.untilMs ?? null } : told);
    own.set(bucket.name, addTexts(own.get(bucket.name) ?? '0', amount));
  }
  return undefined;
}

/** The buckets that a rule counts a call in: none where one call is the whole period, or the session's history counts. */
function placesOf(rule: Rule, call: CountedCall, settings: LimitsSettings): readonly Bucket[] {
  const { per, kind, key } = rule;
  const { nowMs, caller } = call;
  const shared = sharedBucket(settings, key, per, nowMs);
  if (shared !== undefined) return [shared];
  const name = (...parts: readonly string[]): string => nameOf(settings, key, per, parts);
  // The id stands in the name too: a later session or run of the same name counts for itself.
  const { sid } = call;
  const ownBucket = (of: string): Bucket =>
    sid === undefined ? { name: name(caller.name, of) } : { name: name(caller.name, of, sid), sid };
  if (per === 'call') return [];
  if (per === 'run') return call.run === undefined ? [] : [ownBucket(call.run)];
  if (kind === 'call') return [];
  const session = ownBucket(call.session);
  // A new session is no way out for an agent: what it spent of late, in whatever session, counts as well.
  return caller.host
    ? [session]
    : [session, { name: name(caller.name, 'sessions'), sinceMs: nowMs - settings.carryMs + 1 }];
}

/** The one bucket of a sliding or calendar period; `undefined` for a period of another kind. */
function sharedBucket(
  settings: LimitsSettings,
  key: readonly string[],
  per: Period,
  nowMs: number,
): Bucket | undefined {
  if (isSliding(per)) return { name: nameOf(settings, key, per, []), sinceMs: nowMs - SLIDING_MS[per] + 1 };
  if (!isCalendar(per)) return undefined;
  const window = settings.windowOf(per, nowMs);
  return { name: nameOf(settings, key, per, [window.label]), untilMs: window.endMs };
}

function nameOf({ tenant }: LimitsSettings, key: readonly string[], per: Period, parts: readonly string[]): string {
  return JSON.stringify([tenant, ...key, per, ...parts]);
}

function callRule({ tool }: LimitsSource, { count, per }: LimitSource): Rule {
  const told = { limit: { count, per } };
  return { kind: 'call', per, max: String(count), key: ['at_most', tool], told, shown: {}, amountOf: () => '1' };
}

function spendRule({ tool, currency }: LimitsSource, spend: SpendSource): Rule {
  const { field, per, pool, at_most: most } = spend;
  const path = parsePath(field);
  const unit = currency ?? '';
  return {
    kind: 'spend',
    per,
    max: typeof most === 'number' ? (decimalText(most) ?? '0') : most,
    key: pool === undefined ? ['spend', tool, field, unit] : ['pool', pool, unit],
    told: {
      spend: { field, per, at_most: most, currency: unit, ...(pool === undefined ? {} : { pool }) },
    },
    shown: { field, currency: unit, ...(pool === undefined ? {} : { pool }) },
    amountOf: (args) => amountAt(args, path),
  };
}

/** A spent amount is a number of 0 or more, or the sum of several: a text that looks like one is a guess. */
function amountAt(args: JsonValue, path: Path): string | undefined {
  const values = isObject(args) ? readPath(args, path) : undefined;
  if (values === undefined) return undefined;
  const numbers: (number | bigint)[] = [];
  for (const value of values) {
    if ((typeof value !== 'number' && typeof value !== 'bigint') || value < 0) return undefined;
    numbers.push(value);
  }
  const sum = sumDecimals(numbers);
  if (sum === undefined) return undefined;
  return typeof sum === 'object' ? sum.toFixed() : decimalText(sum);
}
