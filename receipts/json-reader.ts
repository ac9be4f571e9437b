import { JsonFault, type JsonFaultCode, renderPointer } from './json-fault.ts';
import { readNumber } from './json-number.ts';
import type { JsonValue } from './json-value.ts';

const NUMBER_SENTENCES = {
  negative_zero: 'negative zero is read as zero by some and not by others: send `0`',
  number: 'this number is not held exactly by a double, or has too many digits: send it as a string',
} as const;

/**
 * A JSON text in (RFC 8259 grammar), its value out, under the strict profile. The slow half of `parseJson`: reached by
 * what the quick half could not prove unambiguous. Throws {@link JsonFault}. Recursion is no deeper than `maxDepth`.
 */
export function readStrictly(text: string, maxDepth: number): JsonValue {
  const reader = new Reader(text, maxDepth);
  return reader.document();
}

class Reader {
  readonly #text: string;
  readonly #maxDepth: number;
  readonly #path: (string | number)[] = [];
  #at = 0;

  constructor(text: string, maxDepth: number) {
    this.#text = text;
    this.#maxDepth = maxDepth;
  }

  document(): JsonValue {
    const value = this.#value();
    this.#skipSpace();
    if (this.#at < this.#text.length) this.#syntax('there is text after the end of the value');
    return value;
  }

  #value(): JsonValue {
    this.#skipSpace();
    switch (this.#text.charCodeAt(this.#at)) {
      case 0x7b:
        return this.#object();
      case 0x5b:
        return this.#array();
      case 0x22:
        return this.#string();
      case 0x74:
        return this.#word('true', true);
      case 0x66:
        return this.#word('false', false);
      case 0x6e:
        return this.#word('null', null);
      default:
        return this.#number();
    }
  }

  #object(): JsonValue {
    const object: Record<string, JsonValue> = {};
    this.#open();
    if (this.#endsAt(0x7d)) return object;
    do {
      this.#skipSpace();
      if (this.#text.charCodeAt(this.#at) !== 0x22) this.#syntax('a member name in double quotes is missing');
      const key = this.#string();
      this.#path.push(key);
      if (key === '__proto__') this.#fail('proto_key', 'a member may not be named `__proto__`');
      if (Object.hasOwn(object, key)) this.#fail('duplicate_key', 'a member is given twice: send it once');
      this.#skipSpace();
      if (this.#text.charCodeAt(this.#at) !== 0x3a) this.#syntax('a colon is missing after a member name');
      this.#at++;
      object[key] = this.#value();
      this.#path.pop();
    } while (this.#goesOn(0x7d));
    return object;
  }

  #array(): JsonValue {
    const items: JsonValue[] = [];
    this.#open();
    if (this.#endsAt(0x5d)) return items;
    do {
      this.#path.push(items.length);
      items.push(this.#value());
      this.#path.pop();
    } while (this.#goesOn(0x5d));
    return items;
  }

  /** Steps over a bracket, unless it opens one level too many: `#path` is as long as the value is deep. */
  #open(): void {
    if (this.#path.length >= this.#maxDepth) this.#fail('depth', `this is nested more than ${this.#maxDepth} deep`);
    this.#at++;
  }

  /** Whether the bracket just opened is closed at once. */
  #endsAt(bracket: number): boolean {
    this.#skipSpace();
    if (this.#text.charCodeAt(this.#at) !== bracket) return false;
    this.#at++;
    return true;
  }

  /** After an item: true past a comma, false past the closing bracket. */
  #goesOn(bracket: number): boolean {
    this.#skipSpace();
    const unit = this.#text.charCodeAt(this.#at);
    if (unit !== 0x2c && unit !== bracket) this.#syntax('a comma or a closing bracket is missing');
    this.#at++;
    return unit === 0x2c;
  }

  #string(): string {
    const text = this.#text;
    let value = '';
    let start = ++this.#at;
    for (;;) {
      const unit = text.charCodeAt(this.#at);
      if (unit === 0x22) break;
      if (unit === 0x5c) {
        value += text.slice(start, this.#at) + this.#escape();
        start = this.#at;
      } else if (unit >= 0x20) this.#at++;
      else
        this.#syntax(
          this.#at < text.length ? 'a control character in a string is not escaped' : 'a string does not end',
        );
    }
    value += text.slice(start, this.#at++);
    if (!value.isWellFormed()) this.#fail('lone_surrogate', 'a string holds half of a surrogate pair');
    return value;
  }

  #escape(): string {
    const unit = this.#text.charAt(this.#at + 1);
    this.#at += 2;
    switch (unit) {
      case '"':
      case '\\':
      case '/':
        return unit;
      case 'b':
        return '\b';
      case 'f':
        return '\f';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'u':
        return this.#hexEscape();
      default:
        return this.#syntax('a backslash is followed by what is no escape');
    }
  }

  #hexEscape(): string {
    let unit = 0;
    for (let i = 0; i < 4; i++) {
      const digit = hexValue(this.#text.charCodeAt(this.#at++));
      if (digit < 0) this.#syntax('`\\u` is not followed by four hexadecimal digits');
      unit = unit * 16 + digit;
    }
    return String.fromCharCode(unit);
  }

  #word<T extends boolean | null>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) this.#syntax('this is no JSON value');
    this.#at += word.length;
    return value;
  }

  /** RFC 8259 section 6: `-`? (0 | [1-9] digits) (`.` digits)? ([eE] [+-]? digits)?, read in one pass. */
  #number(): number | bigint {
    const start = this.#at;
    if (this.#text.charCodeAt(this.#at) === 0x2d) this.#at++;
    if (this.#text.charCodeAt(this.#at) === 0x30) this.#at++;
    else this.#digits();
    if (this.#text.charCodeAt(this.#at) === 0x2e) {
      this.#at++;
      this.#digits();
    }
    const e = this.#text.charCodeAt(this.#at);
    if (e === 0x65 || e === 0x45) {
      this.#at++;
      const sign = this.#text.charCodeAt(this.#at);
      if (sign === 0x2b || sign === 0x2d) this.#at++;
      this.#digits();
    }
    const value = readNumber(this.#text.slice(start, this.#at));
    return typeof value === 'string' ? this.#fail(value, NUMBER_SENTENCES[value]) : value;
  }

  #digits(): void {
    const start = this.#at;
    while (isDigit(this.#text.charCodeAt(this.#at))) this.#at++;
    if (this.#at === start)
      this.#syntax(start < this.#text.length ? 'this is no JSON value' : 'the text ends too early');
  }

  #skipSpace(): void {
    for (;;) {
      const unit = this.#text.charCodeAt(this.#at);
      if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return;
      this.#at++;
    }
  }

  #syntax(what: string): never {
    return this.#fail('syntax', `${what}, at character ${this.#at}: send JSON as RFC 8259 writes it`);
  }

  #fail(code: JsonFaultCode, message: string): never {
    throw new JsonFault(code, renderPointer(this.#path), message);
  }
}

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}

function hexValue(unit: number): number {
  if (isDigit(unit)) return unit - 0x30;
  const lower = unit | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
