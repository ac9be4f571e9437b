import { renderPointer } from '../../receipts/json-fault.ts';
import { isArray, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import type { CallMembers, Problem } from '../exchange.ts';
import { fault } from './problems.ts';

/** The members that a call carries beside its tool and arguments, as the API, MCP and `Toolgate-Call` spell them. */
export const CALL_MEMBER_NAMES: ReadonlySet<string> = new Set([
  'session',
  'agent',
  'run',
  'origins',
  'turns',
  'labels',
  'context',
  'history',
  'confirmation',
  'undoes',
  'idempotency_key',
]);

/** Bounds of what the members may hold, in characters where nothing else is said. */
export const CALL_MEMBER_LIMITS: {
  /** `session`, `agent`, `run`, and each name of an argument, a label or a fact. */
  readonly name: number;
  readonly confirmation: number;
  readonly idempotencyKey: number;
  readonly origin: number;
  readonly turns: number;
  /** Of all turns together. */
  readonly turnsText: number;
  /** Members of `origins`, `labels` and `context`, and labels of one argument. */
  readonly entries: number;
} = {
  name: 200,
  confirmation: 4096,
  idempotencyKey: 255,
  origin: 400,
  turns: 500,
  turnsText: 256 * 1024,
  entries: 500,
};

/** The members of a call, or the first fault with its pointer. */
export type ParsedMembers = { readonly members: CallMembers } | { readonly problem: Problem };

/** The members of a call that brings none. */
export const NO_MEMBERS: CallMembers = { origins: {}, turns: [], labels: {}, context: {} };

/**
 * Reads the members of a call out of `value`. Nothing is believed yet: types and bounds alone are checked.
 * @param allowed Names that may stand in `value`; those that are no members of a call are the reader's own and passed over.
 */
export function parseCallMembers(value: JsonObject, allowed: ReadonlySet<string>): ParsedMembers {
  for (const name of Object.keys(value)) {
    if (allowed.has(name)) continue;
    const pointer = renderPointer([name]);
    return {
      problem: fault('unknown_member', `the member \`${shown(name)}\` is not known here; leave it out`, { pointer }),
    };
  }
  try {
    const members: { -readonly [Name in keyof CallMembers]: CallMembers[Name] } = {
      origins: optional(value, 'origins', origins) ?? NO_MEMBERS.origins,
      turns: optional(value, 'turns', turns) ?? NO_MEMBERS.turns,
      labels: optional(value, 'labels', labelLists) ?? NO_MEMBERS.labels,
      context: optional(value, 'context', truths) ?? NO_MEMBERS.context,
    };
    const session = optional(value, 'session', name);
    if (session !== undefined) members.session = session;
    const agent = optional(value, 'agent', name);
    if (agent !== undefined) members.agent = agent;
    const run = optional(value, 'run', name);
    if (run !== undefined) members.run = run;
    const confirmation = optional(value, 'confirmation', token);
    if (confirmation !== undefined) members.confirmation = confirmation;
    const undoes = optional(value, 'undoes', step);
    if (undoes !== undefined) members.undoes = undoes;
    const idempotencyKey = optional(value, 'idempotency_key', key);
    if (idempotencyKey !== undefined) members.idempotencyKey = idempotencyKey;
    const history = optional(value, 'history', (_at, given) => given);
    if (history !== undefined) members.history = history;
    return { members };
  } catch (error) {
    if (error instanceof MemberFault)
      return { problem: fault('bad_member', error.message, { pointer: error.pointer }) };
    throw error;
  }
}

/** Name of a member and names and indexes within it. */
type Path = readonly (string | number)[];

/** Ends the reading at the first member that is not as it must be; never leaves this file. */
class MemberFault extends Error {
  readonly pointer: string;

  constructor(at: Path, must: string) {
    super(`\`${at.map((part) => shown(String(part))).join('.')}\` must be ${must}`);
    this.name = 'MemberFault';
    this.pointer = renderPointer(at);
  }
}

type Reader<T> = (at: Path, value: JsonValue) => T;

function optional<T>(object: JsonObject, member: string, read: Reader<T>): T | undefined {
  if (!Object.hasOwn(object, member)) return undefined;
  const value = object[member];
  return value === undefined ? undefined : read([member], value);
}

function record<T>(at: Path, value: JsonValue, read: Reader<T>): Readonly<Record<string, T>> {
  const object = asObject(at, value);
  const names = Object.keys(object);
  if (names.length > CALL_MEMBER_LIMITS.entries) {
    throw new MemberFault(at, `an object of at most ${CALL_MEMBER_LIMITS.entries} members`);
  }
  const made: Record<string, T> = {};
  for (const member of names) {
    // To assign it would set the prototype and lose the member; no argument or fact can have this name.
    if (member === '__proto__') throw new MemberFault([...at, member], 'named otherwise');
    line([...at, member], member, CALL_MEMBER_LIMITS.name);
    made[member] = read([...at, member], object[member] ?? null);
  }
  return made;
}

function origins(at: Path, value: JsonValue): Readonly<Record<string, string>> {
  return record(at, value, origin);
}

function labelLists(at: Path, value: JsonValue): Readonly<Record<string, readonly string[]>> {
  return record(at, value, labels);
}

function truths(at: Path, value: JsonValue): Readonly<Record<string, boolean>> {
  return record(at, value, truth);
}

function token(at: Path, value: JsonValue): string {
  return line(at, value, CALL_MEMBER_LIMITS.confirmation);
}

function asObject(at: Path, value: JsonValue): JsonObject {
  if (typeof value !== 'object' || value === null || isArray(value)) throw new MemberFault(at, 'an object');
  return value;
}

function name(at: Path, value: JsonValue): string {
  return line(at, value, CALL_MEMBER_LIMITS.name);
}

function origin(at: Path, value: JsonValue): string {
  return line(at, value, CALL_MEMBER_LIMITS.origin);
}

/** One line of text: not empty, not too long, no control characters. */
function line(at: Path, value: JsonValue, max: number): string {
  if (typeof value !== 'string' || value.length === 0 || value.length > max || hasControls(value)) {
    throw new MemberFault(at, `a text of 1 to ${max} characters without control characters`);
  }
  return value;
}

function key(at: Path, value: JsonValue): string {
  if (typeof value === 'string' && isIdempotencyKey(value)) return value;
  throw new MemberFault(at, `a text of 1 to ${CALL_MEMBER_LIMITS.idempotencyKey} printable ASCII characters`);
}

function step(at: Path, value: JsonValue): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new MemberFault(at, 'the number of a step: an integer from 0');
}

function truth(at: Path, value: JsonValue): boolean {
  if (typeof value === 'boolean') return value;
  throw new MemberFault(at, 'true or false');
}

function turns(at: Path, value: JsonValue): readonly string[] {
  const must = `a list of at most ${CALL_MEMBER_LIMITS.turns} texts, ${CALL_MEMBER_LIMITS.turnsText} characters in all`;
  if (!isArray(value) || value.length > CALL_MEMBER_LIMITS.turns) throw new MemberFault(at, must);
  let left: number = CALL_MEMBER_LIMITS.turnsText;
  return value.map((turn, index) => {
    if (typeof turn !== 'string') throw new MemberFault([...at, index], 'a text');
    left -= turn.length;
    if (left < 0) throw new MemberFault(at, must);
    return turn;
  });
}

function labels(at: Path, value: JsonValue): readonly string[] {
  if (!isArray(value) || value.length > CALL_MEMBER_LIMITS.entries) {
    throw new MemberFault(at, `a list of at most ${CALL_MEMBER_LIMITS.entries} labels`);
  }
  return value.map((label, index) => line([...at, index], label, CALL_MEMBER_LIMITS.name));
}

/** Whether `text` can be an idempotency key: 1 to 255 printable ASCII characters (RFC 9651 section 3.3.3). */
export function isIdempotencyKey(text: string): boolean {
  if (text.length === 0 || text.length > CALL_MEMBER_LIMITS.idempotencyKey) return false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code > 0x7e) return false;
  }
  return true;
}

/** C0, DEL and C1 control characters. */
function hasControls(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return true;
  }
  return false;
}

function shown(text: string): string {
  return text.length > 64 ? `${text.slice(0, 64)}…` : text;
}
