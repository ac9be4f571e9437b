import { randomBytes } from 'node:crypto';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';

/**
 * The SDK reads JSON with `JSON.parse`, which loses digits of integers beyond 2^53. On the way in such an integer is
 * therefore put into a text that only this process can have made, and taken out of it again behind the SDK; on the way
 * out it is raw JSON, which `JSON.stringify` writes as it stands.
 */
const MARK: string = `toolgate-integer:${randomBytes(16).toString('hex')}:`;

/** Raw JSON text (ECMA-262 proposal, in V8 since Node 21); TypeScript's library lacks it. */
const RAW = JSON as typeof JSON & { rawJSON(text: string): object };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;
/** From so many digits on an integer may lie beyond 2^53. */
const LONG = 16;

/**
 * Rewrites JSON text piece by piece as it arrives: integers that a double cannot hold become marked texts, everything
 * else stays byte for byte. In an event stream only `data:` lines are JSON. A line break ends a text that was left open,
 * since JSON has none inside of texts.
 */
export class DigitKeeper {
  readonly #lines: boolean;
  #isData: boolean;
  #lineStart = '';
  #inText = false;
  #escaped = false;
  /** A number that has begun, as far as it has arrived. */
  #number = '';

  /** @param form `json`: the whole is JSON, or JSON lines. `events`: an event stream. */
  constructor(form: 'json' | 'events') {
    this.#lines = form === 'events';
    this.#isData = form === 'json';
  }

  /** One more piece in, what can be passed on out. */
  push(piece: Uint8Array): Uint8Array {
    const text = Buffer.from(piece).toString('latin1');
    let out = '';
    let kept = 0;
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (this.#lines && !this.#isData) {
        if (isBreak(code)) this.#lineStart = '';
        else if (this.#lineStart.length < 5) {
          this.#lineStart += text.charAt(at);
          if (this.#lineStart === 'data:') this.#isData = true;
        }
        continue;
      }
      if (this.#inText) {
        if (this.#escaped) this.#escaped = false;
        else if (code === BACKSLASH) this.#escaped = true;
        else if (code === QUOTE || isBreak(code)) this.#inText = false;
        if (isBreak(code) && this.#lines) this.#endLine();
        continue;
      }
      if (isNumberPart(code) && (this.#number !== '' || code === MINUS || isDigit(code))) {
        if (this.#number === '') {
          out += text.slice(kept, at);
        }
        this.#number += text.charAt(at);
        kept = at + 1;
        continue;
      }
      if (this.#number !== '') {
        out += marked(this.#number);
        this.#number = '';
        kept = at;
      }
      if (code === QUOTE) this.#inText = true;
      else if (isBreak(code) && this.#lines) this.#endLine();
    }
    if (this.#number === '') out += text.slice(kept);
    return Buffer.from(out, 'latin1');
  }

  /** What was kept back, at the end of the text. */
  end(): Uint8Array {
    const rest = marked(this.#number);
    this.#number = '';
    return Buffer.from(rest, 'latin1');
  }

  #endLine(): void {
    this.#isData = false;
    this.#lineStart = '';
    this.#inText = false;
    this.#escaped = false;
  }
}

/** CR and LF: no JSON text holds one unescaped, and each ends a line of an event stream. */
function isBreak(code: number): boolean {
  return code === 0x0a || code === 0x0d;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** Digits, sign, point and exponent. */
function isNumberPart(code: number): boolean {
  return isDigit(code) || code === MINUS || code === 0x2b || code === 0x2e || code === 0x45 || code === 0x65;
}

function marked(number: string): string {
  if (number.length < LONG || !/^-?\d+$/.test(number) || Number.isSafeInteger(Number(number))) return number;
  return `"${MARK}${number}"`;
}

/** A value that the SDK read, with the integers that were kept for it as `bigint`. */
export function fromWire(value: unknown): JsonValue {
  if (typeof value === 'string') return value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value;
  if (value === null || typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint')
    return value;
  if (Array.isArray(value)) return value.map(fromWire);
  if (typeof value !== 'object') throw new TypeError(`a ${typeof value} is no JSON`);
  return objectFromWire(value);
}

/** As `fromWire`, of an object; members without a value are left out. */
export function objectFromWire(value: object): JsonObject {
  const made: Record<string, JsonValue> = {};
  for (const [name, member] of Object.entries(value)) {
    // To assign this name would set the prototype.
    if (member !== undefined && name !== '__proto__') made[name] = fromWire(member);
  }
  return made;
}

/** A value for the SDK to write: every `bigint` as raw JSON. What holds none is passed as it is. */
function toWire(value: JsonValue): unknown {
  if (typeof value === 'bigint') return RAW.rawJSON(value.toString());
  if (value === null || typeof value !== 'object' || !holdsBigint(value)) return value;
  if (Array.isArray(value)) return value.map(toWire);
  return objectToWire(value as JsonObject);
}

/** As `toWire`, of an object. */
export function objectToWire(value: JsonObject): Record<string, unknown> {
  if (!holdsBigint(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, toWire(member)]));
}

function holdsBigint(value: JsonValue): boolean {
  if (typeof value === 'bigint') return true;
  if (value === null || typeof value !== 'object') return false;
  return Object.values(value).some(holdsBigint);
}
