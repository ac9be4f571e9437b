import { isArray, type JsonValue } from '../../receipts/json-value.ts';
import { foldName, type Shape, type ShapeTable } from './shape.ts';

/** What is wrong at one place of an instance. */
export interface SchemaFault {
  /** RFC 6901 pointer of the value at fault; of a missing member, where it would stand. */
  readonly pointer: string;
  /** The keyword that failed; `additionalProperties` for every undeclared name. */
  readonly rule: string;
  /** What is wanted, without the value: "must be integer". */
  readonly message: string;
}

/** Instances nested deeper than this are refused, as the JSON reader does. */
const MAX_DEPTH = 64;
/** Instances of more values than this are refused before any schema is run on them. */
const MAX_VALUES = 200_000;

/** RFC 6901 section 3: `~` and `/` are escaped in a reference token. */
export function escapeToken(token: string): string {
  return token.replaceAll('~', '~0').replaceAll('/', '~1');
}

/**
 * Goes through an instance beside the shape of its schema. It answers whether every name is declared, without
 * allocating, and notes on the way whether there are big integers and how many values there are.
 */
export class Walker {
  readonly #shapes: ShapeTable;
  /** Whether the last instance held a bigint. */
  sawBigInteger = false;
  /** How many values the last instance had, as far as it was walked. */
  values = 0;

  constructor(shapes: ShapeTable) {
    this.#shapes = shapes;
  }

  /** True where the instance keeps to the shape, throughout. */
  accepts(value: JsonValue, shape: Shape): boolean {
    this.sawBigInteger = false;
    this.values = 0;
    return this.#visit(value, shape, 0);
  }

  #visit(value: JsonValue, shape: Shape, depth: number): boolean {
    this.values += 1;
    if (typeof value === 'bigint') this.sawBigInteger = true;
    if (typeof value !== 'object' || value === null) return true;
    if (depth >= MAX_DEPTH || this.values > MAX_VALUES) return false;
    if (isArray(value)) {
      for (let i = 0; i < value.length; i++) {
        const item = value[i];
        if (typeof item !== 'object' || item === null) {
          this.values += 1;
          if (typeof item === 'bigint') this.sawBigInteger = true;
          continue;
        }
        if (!this.#visit(item, this.#shapes.item(shape, i), depth + 1)) return false;
      }
      return this.values <= MAX_VALUES;
    }
    for (const name in value) {
      const child = value[name];
      const slot = shape.keys.get(name);
      if (slot === undefined && nameFault(this.#shapes, shape, name) !== undefined) return false;
      if (child === undefined) return false;
      if (typeof child === 'object' && child !== null) {
        if (!this.#visit(child, childShape(this.#shapes, shape, name), depth + 1)) return false;
      } else {
        this.values += 1;
        if (typeof child === 'bigint') this.sawBigInteger = true;
      }
    }
    return this.values <= MAX_VALUES;
  }

  /** Every undeclared name in document order, at most `limit`; or the one fault of an instance beyond the limits. */
  faults(value: JsonValue, shape: Shape, limit: number): { faults: SchemaFault[]; beyond: boolean } {
    const faults: SchemaFault[] = [];
    let beyond = false;
    let seen = 0;
    const visit = (item: JsonValue | undefined, at: Shape, pointer: string, depth: number): void => {
      seen += 1;
      if (beyond) return;
      const tooDeep = depth >= MAX_DEPTH && typeof item === 'object' && item !== null;
      if (tooDeep || seen > MAX_VALUES) {
        faults.length = 0;
        const [rule, message] = tooDeep
          ? ['maxDepth', `must not be nested deeper than ${MAX_DEPTH}`]
          : ['maxValues', `must not hold more than ${MAX_VALUES} values`];
        faults.push({ pointer, rule, message });
        beyond = true;
        return;
      }
      if (typeof item !== 'object' || item === null) return;
      if (isArray(item)) {
        item.forEach((child: JsonValue, i) => {
          const scalar = typeof child !== 'object' || child === null;
          visit(child, scalar ? at : this.#shapes.item(at, i), `${pointer}/${i}`, depth + 1);
        });
        return;
      }
      for (const [name, child] of Object.entries(item)) {
        const fault = at.keys.has(name) ? undefined : nameFault(this.#shapes, at, name);
        const below = `${pointer}/${escapeToken(name)}`;
        if (fault === undefined) visit(child, childShape(this.#shapes, at, name), below, depth + 1);
        else if (faults.length < limit) faults.push({ pointer: below, ...fault });
      }
    };
    visit(value, shape, '', 0);
    return { faults, beyond };
  }
}

function childShape(shapes: ShapeTable, shape: Shape, name: string): Shape {
  return shapes.member(shape, name) ?? shapes.rest(shape);
}

/** Why a name that is not listed may not stand here, or undefined. */
function nameFault(shapes: ShapeTable, shape: Shape, name: string): Omit<SchemaFault, 'pointer'> | undefined {
  if (shape.denied.has(name)) return NOT_SENT;
  if (name === '__proto__') return UNDECLARED;
  if (!shape.closed && shape.keys.size === 0) return undefined;
  if (shape.hasPatterns && shapes.member(shape, name) !== undefined) return undefined;
  if (shape.closed) return UNDECLARED;
  return shape.folded.has(foldName(name)) ? LOOK_ALIKE : undefined;
}

const NOT_SENT = { rule: 'additionalProperties', message: 'is not declared in this direction: the other side sets it' };
const UNDECLARED = { rule: 'additionalProperties', message: 'is not declared' };
const LOOK_ALIKE = {
  rule: 'additionalProperties',
  message: 'differs from a declared name by case alone',
};
