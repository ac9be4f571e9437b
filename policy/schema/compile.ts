import type { ValidateFunction } from 'ajv';
import { isArray, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import type { Dialect, Direction } from './dialect.ts';
import { DEFAULT_BASE, SchemaDocument, type Scope } from './document.ts';
import { allowSteps } from './engine.ts';
import { faultsOfErrors, sortFaults } from './faults.ts';
import { kindOfShape, type ValueKind } from './kinds.ts';
import type { Lowering, Precision } from './lower.ts';
import { SchemaError, type SchemaNode } from './node.ts';
import { partialReasons } from './partial.ts';
import { renderSchema } from './render.ts';
import type { Shape } from './shape.ts';
import type { SchemaFault } from './walk.ts';
import { type Workshop, workshopFor } from './workshop.ts';

/** How a schema is read. */
export interface SchemaOptions {
  /** The language where `$schema` names none; 2020-12 by default. Ignored with `document`, which has its own. */
  readonly dialect?: Dialect;
  /** The files that references may lead to; by default the schema alone. */
  readonly document?: SchemaDocument;
  /** With `document`: the URI of the file that the schema stands in. */
  readonly base?: string;
  /** In a `request`, `readOnly` members are not declared nor required; in a `response`, `writeOnly` ones. */
  readonly direction?: Direction;
  /** Whether undeclared names are refused where names are listed; true by default. */
  readonly closed?: boolean;
}

/** A schema ready to check arguments or results. */
export interface CompiledSchema<S extends JsonObject | boolean = JsonObject | boolean> {
  /** The schema as given. */
  readonly schema: S;
  /** Why the schema cannot be enforced in full; empty where it can. */
  readonly partial: readonly string[];
  /** Why the schema cannot be used at all, so that `validate` refuses everything; undefined where it can. */
  readonly unusable: string | undefined;
  /** The names that the top level declares, in schema order. */
  readonly topLevel: readonly string[];
  /**
   * Checks an instance. Empty where it is valid; else the faults in document order, at most 20. Compiles on first use;
   * never throws: whatever goes wrong is a fault with the rule `schema`.
   */
  validate(value: JsonValue): readonly SchemaFault[];
  /** Whether the schema declares a field: names joined by dots, numbers for items (`customer.emails.0`). */
  declares(path: string): boolean;
  /** What a top-level argument may be, for reading it from text. Undefined for one that is not declared. */
  kindOf(argument: string): ValueKind | undefined;
  /** What an instance may be as a whole. */
  readonly kind: ValueKind;
  /** Whether the top level itself says that there are no other names than its own (`additionalProperties: false`). */
  readonly sealed: boolean;
  /** The schema as one 2020-12 schema that needs no other file, descriptions kept: what a tool listing shows. */
  render(): JsonObject;
  /** The names that the top level requires of every instance. */
  readonly required: readonly string[];
}

const MAX_FAULTS = 20;
/** Above this many values only the first fault is looked for, so that a hostile body cannot make a long list. */
const MAX_VALUES_FOR_ALL = 2_000;
const VALID: readonly SchemaFault[] = [];

/**
 * Prepares a schema. Nothing is read or compiled before it is asked for, so that a document of thousands of operations
 * loads at once; schemas of one `document` share what they have in common.
 */
export function compileSchema<S extends JsonObject | boolean>(
  schema: S,
  options: SchemaOptions = {},
): CompiledSchema<S> {
  const base = options.base ?? DEFAULT_BASE;
  const document =
    options.document ??
    new SchemaDocument({
      dialect: options.dialect ?? '2020-12',
      files: new Map([[base, schema]]),
      identifiers: true,
    });
  return new LazySchema(schema, workshopFor(document, options), document.scopeOfFile(base));
}

/**
 * Whether a result schema declares a dotted field path (`status`, `customer.id`, `items.0.sku`); false for every path
 * without a schema.
 */
export function resultField(schema: CompiledSchema<JsonObject | boolean> | undefined, path: string): boolean {
  return schema?.declares(path) ?? false;
}

class LazySchema<S extends JsonObject | boolean> implements CompiledSchema<S> {
  readonly schema: S;
  readonly #workshop: Workshop;
  readonly #scope: Scope;
  #read: { node: SchemaNode; partial: readonly string[]; unusable: string | undefined } | undefined;
  #shape: Shape | undefined;
  #first: ValidateFunction | undefined;
  #broken: string | undefined;

  constructor(schema: S, workshop: Workshop, scope: Scope) {
    this.schema = schema;
    this.#workshop = workshop;
    this.#scope = scope;
  }

  get partial(): readonly string[] {
    return this.#node().partial;
  }

  get unusable(): string | undefined {
    return this.#node().unusable;
  }

  get topLevel(): readonly string[] {
    return [...this.#place().keys.keys()];
  }

  validate(value: JsonValue): readonly SchemaFault[] {
    try {
      const { walker } = this.#workshop;
      const shape = this.#shape ?? this.#place();
      const reason = this.#broken ?? this.unusable;
      if (reason !== undefined) return [unusableFault(reason)];
      const declared = walker.accepts(value, shape);
      const first = this.#first ?? this.#compileFirst();
      if (declared && !walker.sawBigInteger) {
        allowSteps(walker.values);
        if (first(value)) return VALID;
      }
      return this.#explain(value, shape);
    } catch (cause) {
      return [unusableFault(reasonOf(cause))];
    }
  }

  declares(path: string): boolean {
    const { shapes } = this.#workshop;
    let shape: Shape | undefined = this.#place();
    for (const name of path.split('.')) {
      const before: Shape = shape;
      shape = shapes.member(before, name);
      if (shape === undefined && /^(?:0|[1-9]\d{0,9})$/.test(name)) {
        const item = shapes.item(before, Number(name));
        if (item.inPlace.length > 0) shape = item;
      }
      if (shape === undefined) return false;
    }
    return true;
  }

  kindOf(argument: string): ValueKind | undefined {
    const { shapes } = this.#workshop;
    const member = shapes.member(this.#place(), argument);
    return member === undefined ? undefined : kindOfShape(member, shapes);
  }

  get kind(): ValueKind {
    return kindOfShape(this.#place(), this.#workshop.shapes);
  }

  get sealed(): boolean {
    return this.#place().inPlace.some(
      (node) => node.additionalProperties?.always === false || node.unevaluatedProperties?.always === false,
    );
  }

  render(): JsonObject {
    return renderSchema(this.#node().node);
  }

  get required(): readonly string[] {
    const names = new Set<string>();
    const visit = (node: SchemaNode | undefined, seen: Set<SchemaNode>): void => {
      if (node === undefined || seen.has(node)) return;
      seen.add(node);
      const { required } = node.assertions;
      if (isArray(required)) for (const name of required) names.add(String(name));
      visit(node.reference(), seen);
      for (const branch of node.allOf) visit(branch, seen);
    };
    visit(this.#node().node, new Set());
    return [...names];
  }

  #node(): { node: SchemaNode; partial: readonly string[]; unusable: string | undefined } {
    if (this.#read !== undefined) return this.#read;
    let node: SchemaNode | undefined;
    try {
      node = this.#workshop.reader.read(this.schema, this.#scope);
      this.#read = { node, partial: partialReasons(node), unusable: undefined };
    } catch (cause) {
      // Reading must not throw at whoever lists the tools; the reason is told and every call is refused.
      const reason = cause instanceof SchemaError ? cause.message : 'the schema cannot be read';
      node ??= this.#workshop.reader.read(false, this.#scope);
      this.#read = { node, partial: [reason], unusable: reason };
    }
    return this.#read;
  }

  #place(): Shape {
    this.#shape ??= this.#workshop.shapes.shapeOf([this.#node().node]);
    return this.#shape;
  }

  #compileFirst(): ValidateFunction {
    try {
      this.#first = this.#compile({ precision: 'double', purpose: 'decide' });
      return this.#first;
    } catch (cause) {
      // Not tried again at every call: it took long, and would fail again.
      this.#broken = reasonOf(cause);
      throw cause;
    }
  }

  #compile(lowering: Lowering): ValidateFunction {
    return this.#workshop.compile(this.#node().node, lowering);
  }

  /** Decides what the first look could not, and finds the faults of what is refused. */
  #explain(value: JsonValue, shape: Shape): readonly SchemaFault[] {
    const { walker } = this.#workshop;
    const { faults: undeclared, beyond } = walker.faults(value, shape, MAX_FAULTS);
    if (beyond) return undeclared;
    const precision: Precision = holdsBigInteger(value) ? 'exact' : 'double';
    const decide = this.#compile({ precision, purpose: 'decide' });
    const values = countValues(value);
    allowSteps(values);
    const valid = decide(value);
    if (valid && undeclared.length === 0) {
      if (precision === 'exact') return VALID;
      throw new TypeError('two readings of the schema differ');
    }
    let errors = decide.errors ?? [];
    if (!valid && values <= MAX_VALUES_FOR_ALL) {
      const tell = this.#compile({ precision, purpose: 'tell' });
      allowSteps(values);
      if (!tell(value)) errors = tell.errors ?? errors;
    }
    return sortFaults([...undeclared, ...faultsOfErrors(errors)], value, MAX_FAULTS);
  }
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : 'it cannot be run';
}

function unusableFault(reason: string): SchemaFault {
  return { pointer: '', rule: 'schema', message: `cannot be checked: ${reason}` };
}

function holdsBigInteger(value: JsonValue): boolean {
  if (typeof value === 'bigint') return true;
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some((item: JsonValue) => holdsBigInteger(item));
}

function countValues(value: JsonValue): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce((sum: number, item: JsonValue) => sum + countValues(item), 1);
}
