import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import type { JsonValue } from '../../receipts/json-value.ts';
import type { ConfigPath, Position, PositionOf, Problem } from './problem.ts';

/** What a configuration may hold at most; more is a mistake or an attack (alias bombs), never a gateway's words. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Of nodes that aliases repeat; those that stand in the file are bounded by its length. */
const MAX_REPEATED = 50_000;
const MAX_DEPTH = 64;

/** A configuration as plain JSON, with the place of everything in it. */
export interface YamlSource {
  /** Absent where the text is no YAML at all. */
  readonly value?: JsonValue;
  readonly positionOf: PositionOf;
  readonly problems: readonly Problem[];
}

interface Offsets {
  readonly key?: number;
  readonly value: number;
}

/**
 * Reads YAML 1.2 (core schema) text of `file`. Faults: syntax, a duplicate key, a tag or number that JSON does not know, a key that is no
 * plain text, aliases that expand without end. Integers beyond ±(2^53-1) become bigints, digit for digit.
 */
export function parseYaml(file: string, text: string): YamlSource {
  const counter = new LineCounter();
  const offsets = new Map<string, Offsets>();
  const problems: Problem[] = [];
  const at = (offset: number): Position => {
    const { line, col } = counter.linePos(offset);
    return { file, line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const positionOf: PositionOf = (path, part = 'value') => {
    for (let length = path.length; length >= 0; length -= 1) {
      const found = offsets.get(pointerOf(path.slice(0, length)));
      if (found === undefined) continue;
      // What is missing is told at the parent's key, where there is one to be seen.
      const wantsKey = length < path.length || part === 'key';
      return at(wantsKey ? (found.key ?? found.value) : found.value);
    }
    return { file, line: 1, column: 1 };
  };
  const fault: Fault = (code, offset, message) => {
    problems.push({ severity: 'error', code, message, ...at(offset) });
  };

  if (text.length > MAX_BYTES) {
    fault('too_large', 0, `the file has more than ${MAX_BYTES} characters; split it or shorten it`);
    return { positionOf, problems };
  }
  const document = parseDocument(text, {
    lineCounter: counter,
    prettyErrors: false,
    strict: true,
    uniqueKeys: true,
    version: '1.2',
    schema: 'core',
    customTags: [],
  });
  for (const error of [...document.errors, ...document.warnings]) {
    const [start] = error.pos;
    const message = messageOf(error.code, error.message, text.slice(start, start + 80));
    fault(CODES[error.code] ?? 'yaml_syntax', start, message);
  }
  if (document.errors.some((error) => error.code !== 'DUPLICATE_KEY')) return { positionOf, problems };
  const walk = new Walk(document, offsets, fault);
  const value = walk.read(document.contents, [], 0);
  return walk.full ? { positionOf, problems } : { value, positionOf, problems };
}

const CODES: Readonly<Record<string, string>> = { DUPLICATE_KEY: 'duplicate_key', TAG_RESOLVE_FAILED: 'unknown_tag' };

function messageOf(code: string, message: string, piece: string): string {
  const word = /^[^\s,{}[\]]*/.exec(piece)?.[0].replace(/:$/, '') ?? '';
  if (code === 'DUPLICATE_KEY') return `\`${word}\` stands twice; the second would hide the first`;
  if (code === 'TAG_RESOLVE_FAILED')
    return `the tag \`${word}\` is not known; write plain values (the environment’s are \`\${NAME}\`)`;
  return message.charAt(0).toLowerCase() + message.slice(1);
}

/** The JSON pointer (RFC 6901) of a path. */
function pointerOf(path: ConfigPath): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

type Fault = (code: string, offset: number, message: string) => void;

class Walk {
  readonly #document: Document;
  readonly #offsets: Map<string, Offsets>;
  readonly #fault: Fault;
  #repeated = 0;
  #aliases = 0;
  /** The caps were met: what was read is not the whole. */
  full = false;

  constructor(document: Document, offsets: Map<string, Offsets>, fault: Fault) {
    this.#document = document;
    this.#offsets = offsets;
    this.#fault = fault;
  }

  read(node: unknown, path: ConfigPath, depth: number, keyOffset?: number): JsonValue {
    const offset = offsetOf(node) ?? keyOffset ?? 0;
    this.#offsets.set(pointerOf(path), keyOffset === undefined ? { value: offset } : { key: keyOffset, value: offset });
    if (this.#aliases > 0) this.#repeated += 1;
    if (this.#repeated > MAX_REPEATED || depth > MAX_DEPTH) {
      if (!this.full) this.#fault('too_large', offset, 'the file nests too deep, or its aliases expand to too much');
      this.full = true;
      return null;
    }
    if (isAlias(node)) {
      this.#aliases += 1;
      const value = this.read(node.resolve(this.#document), path, depth + 1, keyOffset ?? offset);
      this.#aliases -= 1;
      return value;
    }
    if (isMap(node)) return this.#readMap(node.items, path, depth);
    if (isSeq(node)) return node.items.map((item, index) => this.read(item, [...path, index], depth + 1));
    if (isScalar(node)) return this.#readScalar(node.value, node.source, offset);
    return null;
  }

  #readMap(pairs: readonly { key: unknown; value: unknown }[], path: ConfigPath, depth: number): JsonValue {
    const members: [string, JsonValue][] = [];
    const names = new Set<string>();
    for (const { key, value } of pairs) {
      if (this.full) break;
      const keyOffset = offsetOf(key) ?? 0;
      const name = isScalar(key) ? (typeof key.value === 'string' ? key.value : key.source) : undefined;
      if (name === undefined || name === '__proto__') {
        this.#fault('wrong_key', keyOffset, 'a key must be a plain text');
        continue;
      }
      // A duplicate is already a fault; the first stands, so that what follows is told about that one.
      if (names.has(name)) continue;
      names.add(name);
      members.push([name, this.read(value, [...path, name], depth + 1, keyOffset)]);
    }
    return Object.fromEntries(members);
  }

  #readScalar(value: unknown, source: string | undefined, offset: number): JsonValue {
    if (value === null || value === undefined) return null;
    if (typeof value === 'string' || typeof value === 'boolean') return value;
    if (typeof value === 'number') {
      if (!Number.isFinite(value)) {
        this.#fault(
          'wrong_number',
          offset,
          `\`${source ?? value}\` is not a number that JSON knows; write a finite one`,
        );
        return null;
      }
      if (Number.isInteger(value) && !Number.isSafeInteger(value) && /^[-+]?[0-9]+$/.test(source ?? '')) {
        return BigInt((source ?? '').replace('+', ''));
      }
      return value;
    }
    this.#fault('unknown_tag', offset, 'a value must be a text, number, boolean, null, list or mapping');
    return null;
  }
}

function offsetOf(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0];
}
