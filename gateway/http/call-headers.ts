import {
  type Dictionary,
  isInnerList,
  ParseError,
  parseDictionary,
  parseItem,
  parseList,
  Token,
} from 'structured-headers';
import { decodeBase64url } from '../../receipts/base64url.ts';
import { parseJson } from '../../receipts/json.ts';
import { JsonFault } from '../../receipts/json-fault.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { CallMembers, Problem } from '../exchange.ts';
import { CALL_MEMBER_NAMES, isIdempotencyKey, NO_MEMBERS, parseCallMembers } from './call-members.ts';
import type { EdgeExchange } from './edge-exchange.ts';
import { fault } from './problems.ts';

/** What the headers of a proxied request say about its call. */
export interface CallHeaders {
  readonly members: CallMembers;
  /** `Toolgate-Receipt`: a history, whole or cut. */
  readonly receipt?: JsonValue;
  /** `Toolgate-Want: entry`: the signed entry is asked for. */
  readonly wantEntry: boolean;
}

const NONE: CallHeaders = { members: NO_MEMBERS, wantEntry: false };

/** Short form → member and how its value is read. */
const SHORT_FORMS: readonly (readonly [header: string, member: string, read: (value: string) => JsonValue])[] = [
  ['toolgate-session', 'session', (value) => value],
  ['toolgate-agent', 'agent', (value) => value],
  ['toolgate-run', 'run', (value) => value],
  ['toolgate-undoes', 'undoes', readStep],
  ['toolgate-confirmation', 'confirmation', (value) => value],
  ['toolgate-origins', 'origins', readOrigins],
  ['toolgate-context', 'context', readContext],
  ['idempotency-key', 'idempotency_key', readKey],
];

/**
 * Reads the members of a call from `Toolgate-Call` (base64url of JSON), the short forms and `Idempotency-Key`. A member that
 * comes in two of them is refused: two readers could take two different ones.
 */
export function readCallHeaders(exchange: Pick<EdgeExchange, 'header'>): CallHeaders | { readonly problem: Problem } {
  let current = '';
  try {
    const whole = exchange.header('toolgate-call');
    let given: Record<string, JsonValue> | undefined;
    if (whole !== undefined) {
      current = 'toolgate-call';
      given = { ...readObject(whole) };
    }
    for (const [header, member, read] of SHORT_FORMS) {
      const value = exchange.header(header);
      if (value === undefined) continue;
      current = header;
      given ??= {};
      if (Object.hasOwn(given, member)) {
        return {
          problem: fault('member_twice', `\`${member}\` comes in \`${header}\` and in \`toolgate-call\`; send it once`),
        };
      }
      given[member] = read(value);
    }
    const receiptText = exchange.header('toolgate-receipt');
    const wantText = exchange.header('toolgate-want');
    if (given === undefined && receiptText === undefined && wantText === undefined) return NONE;
    current = 'toolgate-receipt';
    const receipt = receiptText === undefined ? undefined : readJson(receiptText);
    current = 'toolgate-want';
    const wantEntry = wantText !== undefined && readWant(wantText);
    const parsed = given === undefined ? { members: NO_MEMBERS } : parseCallMembers(given, CALL_MEMBER_NAMES);
    if ('problem' in parsed) return parsed;
    return { members: parsed.members, ...(receipt === undefined ? {} : { receipt }), wantEntry };
  } catch (error) {
    if (error instanceof HeaderFault || error instanceof ParseError) {
      return { problem: fault('bad_member', `the header \`${current}\` cannot be read: ${lower(error.message)}`) };
    }
    if (error instanceof JsonFault) {
      const detail = `the JSON in the header \`${current}\` is refused: ${error.message}`;
      return { problem: fault('bad_json', detail, { pointer: error.pointer }) };
    }
    throw error;
  }
}

/** A header value that is not what its name says; never leaves this file. */
class HeaderFault extends Error {}

function readJson(value: string): JsonValue {
  const bytes = decodeBase64url(value);
  if (bytes === undefined) throw new HeaderFault('it must be JSON in base64url without padding');
  return parseJson(bytes);
}

function readObject(value: string): JsonObject {
  const object = readJson(value);
  if (typeof object !== 'object' || object === null || Array.isArray(object)) {
    throw new HeaderFault('it must be a JSON object in base64url');
  }
  return object as JsonObject;
}

function readStep(value: string): number {
  if (value.length > 15 || !/^(?:0|[1-9][0-9]*)$/.test(value)) {
    throw new HeaderFault('it must be the number of a step: an integer from 0');
  }
  return Number(value);
}

/** `order_id=typed, amount="result:3.total"`: a dictionary (RFC 9651 section 3.2) of tokens or strings. */
function readOrigins(value: string): JsonObject {
  const origins: Record<string, string> = {};
  for (const [name, member] of readDictionary(value)) {
    const word = member[0];
    if (isInnerList(member) || !(typeof word === 'string' || word instanceof Token) || member[1].size > 0) {
      throw new HeaderFault(`\`${name}\` must be a token or a string, without parameters`);
    }
    origins[name] = word.toString();
  }
  return origins;
}

/** `order_paid, express=?0`: a dictionary of booleans. */
function readContext(value: string): JsonObject {
  const context: Record<string, boolean> = {};
  for (const [name, member] of readDictionary(value)) {
    const truth = member[0];
    if (isInnerList(member) || typeof truth !== 'boolean' || member[1].size > 0) {
      throw new HeaderFault(`\`${name}\` must be a boolean: \`${name}\` or \`${name}=?0\``);
    }
    context[name] = truth;
  }
  return context;
}

function readDictionary(value: string): Dictionary {
  const dictionary = parseDictionary(value);
  // RFC 9651 lets the last of two equal keys win; here a member given twice is refused.
  if (dictionary.size !== countMembers(value)) throw new HeaderFault('a name stands twice in it');
  return dictionary;
}

/** Members of a dictionary that parses: commas outside of strings, and one. */
function countMembers(value: string): number {
  let count = value.trim() === '' ? 0 : 1;
  let quoted = false;
  for (let at = 0; at < value.length; at += 1) {
    const code = value.charCodeAt(at);
    if (quoted && code === 0x5c) at += 1;
    else if (code === 0x22) quoted = !quoted;
    else if (code === 0x2c && !quoted) count += 1;
  }
  return count;
}

function readWant(value: string): boolean {
  for (const item of parseList(value)) {
    const word = item[0];
    if (isInnerList(item) || !(word instanceof Token) || word.toString() !== 'entry') {
      throw new HeaderFault('it can ask for `entry` alone');
    }
  }
  return true;
}

/** The idempotency key in the value of its header; `undefined` where the value is none. */
export function parseIdempotencyKey(value: string): string | undefined {
  try {
    return readKey(value);
  } catch (error) {
    if (error instanceof HeaderFault || error instanceof ParseError) return undefined;
    throw error;
  }
}

/**
 * An idempotency key: a structured-field string (draft-ietf-httpapi-idempotency-key-header-07 section 2.1), or the same text
 * without quotes, as many clients send it.
 */
function readKey(value: string): string {
  const key = value.startsWith('"') ? readQuoted(value) : value;
  if (!isIdempotencyKey(key)) throw new HeaderFault('it must have 1 to 255 printable ASCII characters');
  return key;
}

function readQuoted(value: string): string {
  const [text, parameters] = parseItem(value);
  if (typeof text !== 'string' || parameters.size > 0)
    throw new HeaderFault('it must be one string without parameters');
  return text;
}

function lower(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
