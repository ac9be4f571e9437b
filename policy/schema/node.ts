import { isArray, isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { type Dialect, type Direction, member, upgradeSchema } from './dialect.ts';
import type { SchemaDocument, Scope } from './document.ts';
import { checkEnforceable, type PatternProperty, readPatternProperties } from './enforceable.ts';
import { faultOfSubschemas, readAssertions } from './keywords.ts';

/**
 * One schema object as read: in the keywords of 2020-12, its references followed on demand, with what in it cannot be
 * enforced. From nodes are made both what ajv compiles and the shape that the walker uses, so that the two agree.
 */
export interface SchemaNode {
  readonly id: number;
  /** Set for the schemas `true` and `false`. */
  readonly always: boolean | undefined;
  readonly source: JsonValue;
  readonly dialect: Dialect;
  readonly assertions: Readonly<Record<string, JsonValue>>;
  /** Present where the schema lists properties, even none. */
  readonly properties: ReadonlyMap<string, SchemaNode> | undefined;
  readonly patternProperties: readonly PatternProperty<SchemaNode>[];
  /** Names that this direction does not carry (`readOnly` in a request). */
  readonly denied: ReadonlySet<string>;
  readonly additionalProperties: SchemaNode | undefined;
  readonly unevaluatedProperties: SchemaNode | undefined;
  readonly propertyNames: SchemaNode | undefined;
  readonly prefixItems: readonly SchemaNode[];
  readonly items: SchemaNode | undefined;
  readonly unevaluatedItems: SchemaNode | undefined;
  readonly contains: SchemaNode | undefined;
  readonly allOf: readonly SchemaNode[];
  readonly anyOf: readonly SchemaNode[];
  readonly oneOf: readonly SchemaNode[];
  readonly not: SchemaNode | undefined;
  readonly condition: SchemaNode | undefined;
  readonly consequence: SchemaNode | undefined;
  readonly alternative: SchemaNode | undefined;
  readonly dependentSchemas: ReadonlyMap<string, SchemaNode>;
  /** Where `$ref` leads; read when first asked. Undefined without one, or where it leads nowhere. */
  readonly reference: () => SchemaNode | undefined;
  /** Why this schema object, those below it aside, cannot be enforced in full. */
  readonly partial: readonly string[];
}

/** Schemas nested deeper than this are refused when read: no honest document comes near, and reading recurses. */
const MAX_SCHEMA_DEPTH = 256;

/** Thrown for a schema that cannot be used at all. The message is for the operator. */
export class SchemaError extends Error {
  readonly code = 'schema_unusable';
}

/** Reads the schemas of one document, each once, for one direction. */
export class SchemaReader {
  readonly document: SchemaDocument;
  readonly #direction: Direction | undefined;
  readonly #nodes = new Map<object, SchemaNode>();
  #count = 0;
  #depth = 0;

  constructor(document: SchemaDocument, direction: Direction | undefined) {
    this.document = document;
    this.#direction = direction;
  }

  /** The node of a schema that stands in `parent`. Throws `SchemaError` for one nested beyond measure. */
  read(schema: JsonValue, parent: Scope): SchemaNode {
    if (!isObject(schema)) return this.#make(schema, typeof schema === 'boolean' ? schema : undefined, {});
    const known = this.#nodes.get(schema);
    if (known !== undefined) return known;
    if (this.#depth >= MAX_SCHEMA_DEPTH) throw new SchemaError(`schemas are nested deeper than ${MAX_SCHEMA_DEPTH}`);
    this.#depth += 1;
    try {
      const node = this.#readObject(schema, this.document.scopeOf(schema, parent));
      this.#nodes.set(schema, node);
      return node;
    } finally {
      this.#depth -= 1;
    }
  }

  #make(source: JsonValue, always: boolean | undefined, parts: Partial<SchemaNode>): SchemaNode {
    return {
      id: this.#count++,
      always,
      source,
      dialect: this.document.dialect,
      assertions: {},
      properties: undefined,
      patternProperties: [],
      denied: NO_NAMES,
      additionalProperties: undefined,
      unevaluatedProperties: undefined,
      propertyNames: undefined,
      prefixItems: [],
      items: undefined,
      unevaluatedItems: undefined,
      contains: undefined,
      allOf: [],
      anyOf: [],
      oneOf: [],
      not: undefined,
      condition: undefined,
      consequence: undefined,
      alternative: undefined,
      dependentSchemas: NO_NODES,
      reference: NOWHERE,
      partial: [],
      ...parts,
    };
  }

  #readObject(original: JsonObject, scope: Scope): SchemaNode {
    const schema = upgradeSchema(original, scope.dialect);
    const { assertions, faults } = readAssertions(schema);
    checkEnforceable(assertions, faults);
    const one = (keyword: string): SchemaNode | undefined => {
      const value = this.#subschemas(schema, keyword, faults);
      return value === undefined ? undefined : this.read(value, scope);
    };
    const list = (keyword: string): SchemaNode[] => {
      const value = this.#subschemas(schema, keyword, faults);
      return isArray(value) ? value.map((child) => this.read(child, scope)) : [];
    };
    const map = (keyword: string): Map<string, SchemaNode> | undefined => {
      const value = this.#subschemas(schema, keyword, faults);
      if (!isObject(value)) return undefined;
      return new Map(Object.entries(value).map(([key, child]) => [key, this.read(child, scope)]));
    };
    const properties = map('properties');
    const denied = this.#deny(properties, assertions);
    if (properties?.delete('__proto__')) faults.push('no value may have a member `__proto__`');
    return this.#make(original, undefined, {
      dialect: scope.dialect,
      assertions,
      properties,
      denied,
      patternProperties: readPatternProperties(map('patternProperties'), faults),
      additionalProperties: one('additionalProperties'),
      unevaluatedProperties: one('unevaluatedProperties'),
      propertyNames: one('propertyNames'),
      prefixItems: list('prefixItems'),
      items: one('items'),
      unevaluatedItems: one('unevaluatedItems'),
      contains: one('contains'),
      allOf: list('allOf'),
      anyOf: list('anyOf'),
      oneOf: list('oneOf'),
      not: one('not'),
      condition: one('if'),
      consequence: one('then'),
      alternative: one('else'),
      dependentSchemas: map('dependentSchemas') ?? NO_NODES,
      reference: this.#reference(schema, scope, faults),
      partial: faults,
    });
  }

  #subschemas(schema: JsonObject, keyword: string, faults: string[]): JsonValue | undefined {
    const value = member(schema, keyword);
    if (value === undefined) return undefined;
    const fault = faultOfSubschemas(keyword, value);
    if (fault === undefined) return value;
    faults.push(fault);
    return undefined;
  }

  /** Takes out what this direction does not carry, and no longer requires it (OpenAPI 3.0.3, Schema Object, readOnly). */
  #deny(properties: Map<string, SchemaNode> | undefined, assertions: Record<string, JsonValue>): ReadonlySet<string> {
    if (properties === undefined || this.#direction === undefined) return NO_NAMES;
    const keyword = this.#direction === 'request' ? 'readOnly' : 'writeOnly';
    const denied = new Set<string>();
    for (const [name, node] of properties) {
      if (isObject(node.source) && member(node.source, keyword) === true) denied.add(name);
    }
    if (denied.size === 0) return NO_NAMES;
    for (const name of denied) properties.delete(name);
    const { required } = assertions;
    if (isArray(required)) {
      assertions['required'] = required.filter((name) => typeof name !== 'string' || !denied.has(name));
    }
    return denied;
  }

  #reference(schema: JsonObject, scope: Scope, faults: string[]): () => SchemaNode | undefined {
    const reference = member(schema, '$ref') ?? this.#staticReference(schema, scope, faults);
    if (reference === undefined) return NOWHERE;
    if (typeof reference !== 'string') {
      faults.push('`$ref` must be a text');
      return NOWHERE;
    }
    // Looked up at once, so that a reference to nowhere is known; read on demand, so that cycles end.
    const target = this.document.resolve(reference, scope);
    if (target === undefined || !(isObject(target.schema) || typeof target.schema === 'boolean')) {
      faults.push(`the reference \`${reference.slice(0, 200)}\` leads to no schema`);
      return NOWHERE;
    }
    let node: SchemaNode | undefined;
    return () => {
      node ??= this.read(target.schema, target.scope);
      return node;
    };
  }

  /**
   * A dynamic reference is an ordinary one where its first target has no dynamic anchor (2020-12 core 8.2.3.2), and where
   * a single resource gives that anchor; otherwise it is not followed.
   */
  #staticReference(schema: JsonObject, scope: Scope, faults: string[]): string | undefined {
    const recursive = member(schema, '$recursiveRef') === '#' ? '#' : undefined;
    const dynamic = member(schema, '$dynamicRef') ?? recursive;
    if (typeof dynamic !== 'string') return undefined;
    const anchor = dynamic.slice(dynamic.indexOf('#') + 1);
    const target = this.document.resolve(dynamic, scope)?.schema;
    const isDynamic =
      isObject(target) && (member(target, '$dynamicAnchor') === anchor || member(target, '$recursiveAnchor') === true);
    if (isDynamic && this.document.dynamicAnchorCount(anchor) > 1) {
      faults.push(`the dynamic reference \`${dynamic.slice(0, 200)}\` depends on the way to it, and is not followed`);
      return undefined;
    }
    return dynamic;
  }
}

const NOWHERE = (): undefined => undefined;
const NO_NAMES: ReadonlySet<string> = new Set();
const NO_NODES: ReadonlyMap<string, SchemaNode> = new Map();
