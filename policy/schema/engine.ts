import { _, type FuncKeywordDefinition, type KeywordCxt, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { DataValidateFunction, DataValidationCxt } from 'ajv/dist/types/index.js';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { FORMATS } from './formats.ts';
import { type AjvSchema, type Lowering, lowerSchema, type Variant } from './lower.ts';
import type { SchemaNode } from './node.ts';
import { equalityKey, isInteger, isMultipleOf, isNumber, type JsonNumber } from './numbers.ts';
import { compilePattern } from './pattern.ts';

/**
 * How many references one validation may follow, whatever the instance, and besides for each of its values. Schemas that
 * refer to themselves in several branches would otherwise take time exponential in the instance's depth.
 */
const MAX_STEPS = 100_000;
const STEPS_PER_VALUE = 10;
const steps = { left: 0 };

function takeStep(): void {
  steps.left -= 1;
  if (steps.left < 0) throw new RangeError('the schema takes too many steps to check');
}

type Data = JsonValue;

/** Keywords of ours that stand for JSON Schema's, compared exactly for both kinds of number. */
const KEYWORDS: readonly FuncKeywordDefinition[] = [
  numeric('exactMinimum', (data, bound) => data >= bound),
  numeric('exactMaximum', (data, bound) => data <= bound),
  numeric('exactExclusiveMinimum', (data, bound) => data > bound),
  numeric('exactExclusiveMaximum', (data, bound) => data < bound),
  numeric('exactMultipleOf', isMultipleOf),
  {
    keyword: 'exactType',
    errors: false,
    compile: (types: string | string[]) => {
      const allowed = typeof types === 'string' ? [types] : types;
      return (data: Data) => allowed.some((type) => isOfType(data, type));
    },
  },
  {
    keyword: 'exactEnum',
    errors: false,
    compile: (values: Data[]) => {
      const allowed = new Set(values.map(equalityKey));
      return (data: Data) => allowed.has(equalityKey(data));
    },
  },
  {
    keyword: 'exactConst',
    errors: false,
    compile: (value: Data) => {
      const wanted = equalityKey(value);
      return (data: Data) => equalityKey(data) === wanted;
    },
  },
  {
    keyword: 'exactFormat',
    errors: false,
    compile: (name: string) => {
      const format = FORMATS.get(name);
      return (data: Data) => format?.type !== 'number' || !isNumber(data) || format.validate(data);
    },
  },
  {
    // ajv's own compares every pair of items.
    keyword: 'distinctItems',
    type: 'array',
    errors: false,
    compile: () => (data: Data[]) => new Set(data.map(equalityKey)).size === data.length,
  },
];

function numeric(keyword: string, holds: (data: JsonNumber, bound: JsonNumber) => boolean): FuncKeywordDefinition {
  return {
    keyword,
    errors: false,
    compile: (bound: JsonNumber) => (data: Data) => !isNumber(data) || holds(data, bound),
  };
}

function isOfType(data: Data, type: string): boolean {
  switch (type) {
    case 'null':
      return data === null;
    case 'array':
      return Array.isArray(data);
    case 'object':
      return typeof data === 'object' && data !== null && !Array.isArray(data);
    case 'integer':
      return isInteger(data);
    case 'number':
      return isNumber(data);
    default:
      return typeof data === type;
  }
}

/** Gives a fresh allowance of steps to the next validation, of an instance of so many values. */
export function allowSteps(values: number): void {
  steps.left = MAX_STEPS + STEPS_PER_VALUE * values;
}

/** One ajv for the schemas of one document: nodes are lowered and added as they are reached, compiled on first use. */
export class Engine {
  readonly #ajv: Ajv2020;
  readonly #lowering: Lowering;
  readonly #added = new Set<string>();
  readonly #waiting = new Map<string, [SchemaNode, Variant]>();

  constructor(lowering: Lowering) {
    this.#lowering = lowering;
    this.#ajv = new Ajv2020({
      strictSchema: true,
      strictTypes: false,
      strictTuples: false,
      strictRequired: false,
      allowMatchingProperties: true,
      ownProperties: true,
      allErrors: lowering.purpose === 'tell',
      messages: lowering.purpose === 'tell',
      inlineRefs: false,
      validateSchema: false,
      meta: false,
      logger: false,
      code: {
        optimize: false,
        regExp: Object.assign((pattern: string) => ajvPattern(pattern), { code: 'linearPattern' }),
      },
    });
    for (const keyword of KEYWORDS) this.#ajv.addKeyword(keyword);
    // Before the first rule of all: a step must be taken before the branches that might multiply are.
    this.#ajv.addKeyword({ keyword: 'countStep', schemaType: 'boolean', before: '$dynamicAnchor', code: countStep });
    this.#ajv.addKeyword({
      keyword: 'lazyRef',
      schemaType: 'string',
      errors: 'full',
      compile: (id: string) => this.#lazyRef(id),
    });
    for (const [name, format] of FORMATS) {
      if (format.type === 'string') this.#ajv.addFormat(name, { type: 'string', validate: format.validate });
      else this.#ajv.addFormat(name, { type: 'number', validate: format.validate });
    }
  }

  /** Compiles the schema of a place, as far as no value must reach it first. Throws where ajv will not have it. */
  compile(node: SchemaNode, closing: boolean): ValidateFunction {
    return this.#compile(node, closing ? 'closed' : 'bare');
  }

  #compile(node: SchemaNode, variant: Variant): ValidateFunction {
    const queue: [SchemaNode, Variant][] = [];
    const now = (target: SchemaNode, as: Variant): string => {
      const id = idOf(target, as);
      if (!this.#added.has(id)) {
        this.#added.add(id);
        queue.push([target, as]);
      }
      return id;
    };
    const later = (target: SchemaNode, as: Variant): string => {
      const id = idOf(target, as);
      this.#waiting.set(id, [target, as]);
      return id;
    };
    const id = now(node, variant);
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      const schema = lowerSchema(next[0], next[1], this.#lowering, { now, later });
      this.#ajv.addSchema(asComponent(schema, next[0] !== node), idOf(...next));
    }
    const compiled = this.#ajv.getSchema(id);
    if (compiled === undefined) throw new TypeError('the schema was not compiled');
    return compiled;
  }

  /**
   * A reference that is compiled when a value first gets there: large documents are compiled as far as calls use them,
   * and a long chain of references does not recurse.
   */
  #lazyRef(id: string): DataValidateFunction {
    let target: ValidateFunction | undefined;
    let failure: unknown;
    const validate: DataValidateFunction = (data: unknown, context?: DataValidationCxt) => {
      takeStep();
      if (target === undefined) {
        const waiting = this.#waiting.get(id);
        if (waiting === undefined) throw new TypeError('a reference leads nowhere');
        if (failure !== undefined) throw failure;
        try {
          target = this.#compile(...waiting);
        } catch (cause) {
          // What cannot be compiled is not tried again at every call.
          failure = cause;
          throw cause;
        }
      }
      if (target(data, context)) return true;
      validate.errors = target.errors ?? [];
      return false;
    };
    return validate;
  }
}

function idOf(node: SchemaNode, variant: Variant): string {
  return `https://schema.invalid/${node.id}/${variant}`;
}

function asComponent(schema: AjvSchema, counted: boolean): JsonObject | { [keyword: string]: unknown } {
  const object = schema === true ? {} : schema === false ? { not: {} } : schema;
  return counted ? { ...object, countStep: true } : object;
}

function countStep(cxt: KeywordCxt): void {
  const take = cxt.gen.scopeValue('func', { ref: takeStep });
  cxt.gen.code(_`${take}()`);
}

function ajvPattern(source: string): { test(text: string): boolean; toString(): string } {
  const pattern = compilePattern(source);
  // ajv shares compiled patterns by their text.
  return { test: (text) => pattern.test(text), toString: () => `linear:${source}` };
}
