import type { Document, Node, ParsedNode } from 'yaml';
import { LineCounter, parseDocument } from 'yaml';
import type { JsonValue } from '../../receipts/json-value.ts';

const MAX_DEPTH = 64;

/** Lists in lists, or maps in maps, opened on one line. */
const BLOCK_RUN = /(?:[-?:][ \t]+){32}/;

/** A text that is no YAML, or YAML that no rule sheet needs; line and column count from 1. */
export class YamlTextError extends Error {
  readonly code = 'yaml_text';
  readonly line: number;
  readonly column: number;

  constructor(place: { readonly line: number; readonly column: number }, message: string) {
    super(message);
    this.line = place.line;
    this.column = place.column;
  }
}

/** A parsed text with the means to tell where its nodes stand. */
export interface YamlText {
  readonly document: Document.Parsed<ParsedNode>;
  readonly counter: LineCounter;
}

/**
 * Parses YAML 1.2, one document.
 * @throws YamlTextError for a syntax fault, and for nesting that is too deep to be read
 */
export function parseYamlText(text: string): YamlText {
  refuseDeepText(text);
  const counter = new LineCounter();
  let document: Document.Parsed<ParsedNode>;
  try {
    document = parseDocument(text, { lineCounter: counter, uniqueKeys: true, intAsBigInt: true });
  } catch (error) {
    // The parser recurses: nesting deep enough overflows it.
    if (error instanceof RangeError) throw new YamlTextError({ line: 1, column: 1 }, 'it is nested too deep');
    throw error;
  }
  const fault = document.errors[0];
  if (fault !== undefined) {
    // The parser reports its own overflow as a fault of the text.
    const deep = fault.message.includes('call stack');
    const message = deep ? 'it is nested too deep' : (fault.message.split('\n')[0] ?? fault.code);
    throw new YamlTextError(placeOf(counter, fault.pos[0]), message);
  }
  return { document, counter };
}

/** The parser's time grows with the square of the depth, and no rule nests: what opens too much is not parsed at all. */
function refuseDeepText(text: string): void {
  let depth = 0;
  let line = 1;
  let lineStart = 0;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === '[' || character === '{') depth += 1;
    else if (character === ']' || character === '}') depth = Math.max(0, depth - 1);
    else if (character === '\n') {
      line += 1;
      lineStart = at + 1;
    }
    if (depth > MAX_DEPTH) throw new YamlTextError({ line, column: at + 1 - lineStart }, 'it is nested too deep');
  }
  if (BLOCK_RUN.test(text)) throw new YamlTextError({ line: 1, column: 1 }, 'it is nested too deep');
}

/**
 * The plain value of a node. Integers that a number holds exactly are numbers, larger ones keep every digit.
 * @throws YamlTextError where aliases multiply what is written
 */
export function yamlValue(node: Node, { document, counter }: YamlText): JsonValue {
  try {
    return plain(node.toJS(document, { maxAliasCount: 10 }));
  } catch (error) {
    if (error instanceof ReferenceError || error instanceof RangeError) {
      throw new YamlTextError(
        placeOf(counter, node.range?.[0] ?? 0),
        'it repeats itself by aliases, or is nested too deep',
      );
    }
    throw error;
  }
}

/** The line and column of an offset, both from 1 even where nothing was read. */
export function placeOf(counter: LineCounter, offset: number): { readonly line: number; readonly column: number } {
  const { line, col } = counter.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

function plain(value: unknown): JsonValue {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return value;
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object') return null;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]));
}
