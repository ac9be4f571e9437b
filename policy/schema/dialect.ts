import { isArray, isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';

/** The schema languages that are read; all are turned into 2020-12 on reading. */
export type Dialect = '2020-12' | '2019-09' | 'draft-07' | 'draft-04' | 'openapi-3.0';

/** Which way the values of a schema go: `readOnly` members are not sent in requests, `writeOnly` ones not in responses. */
export type Direction = 'request' | 'response';

/** How the schemas below a keyword are arranged: one, a list, a map by name. */
export type Arrangement = 'one' | 'list' | 'map';

/** Every keyword of the read dialects whose value holds schemas. */
export const SUBSCHEMA_KEYWORDS: ReadonlyMap<string, Arrangement> = new Map<string, Arrangement>([
  ['properties', 'map'],
  ['patternProperties', 'map'],
  ['additionalProperties', 'one'],
  ['unevaluatedProperties', 'one'],
  ['propertyNames', 'one'],
  ['items', 'one'],
  ['prefixItems', 'list'],
  ['additionalItems', 'one'],
  ['unevaluatedItems', 'one'],
  ['contains', 'one'],
  ['allOf', 'list'],
  ['anyOf', 'list'],
  ['oneOf', 'list'],
  ['not', 'one'],
  ['if', 'one'],
  ['then', 'one'],
  ['else', 'one'],
  ['dependentSchemas', 'map'],
  ['dependencies', 'map'],
  ['$defs', 'map'],
  ['definitions', 'map'],
  ['contentSchema', 'one'],
]);

/** True where a schema may stand: an object or a boolean. */
export function isSchema(value: JsonValue | undefined): value is JsonObject | boolean {
  return typeof value === 'boolean' || isObject(value);
}

/** An own member of an object, or undefined: never one that the prototype gives. */
export function member(object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

const BY_META_SCHEMA: ReadonlyMap<string, Dialect> = new Map<string, Dialect>([
  ['https://json-schema.org/draft/2020-12/schema', '2020-12'],
  ['https://json-schema.org/draft/2019-09/schema', '2019-09'],
  ['http://json-schema.org/draft-07/schema', 'draft-07'],
  ['http://json-schema.org/draft-06/schema', 'draft-07'],
  ['http://json-schema.org/draft-04/schema', 'draft-04'],
  ['https://spec.openapis.org/oas/3.1/dialect/base', '2020-12'],
]);

/** The dialect that `$schema` names, or undefined for one that is not read. */
export function dialectOf(metaSchema: string): Dialect | undefined {
  return BY_META_SCHEMA.get(metaSchema.replace(/#$/, ''));
}

/** In these dialects whatever stands beside `$ref` is ignored (draft-07 core 8.3; OpenAPI 3.0.3, Reference Object). */
export function ignoresBesideRef(dialect: Dialect): boolean {
  return dialect === 'draft-07' || dialect === 'draft-04' || dialect === 'openapi-3.0';
}

/**
 * Rewrites one schema object, not those below it, from its dialect into the keywords of 2020-12. Members keep the identity
 * of their values, so that what was read of them before is found again.
 */
export function upgradeSchema(schema: JsonObject, dialect: Dialect): JsonObject {
  if (ignoresBesideRef(dialect) && typeof member(schema, '$ref') === 'string') {
    const ref = member(schema, '$ref') ?? null;
    return member(schema, 'nullable') === true && dialect === 'openapi-3.0' ? orNull({ $ref: ref }) : { $ref: ref };
  }
  // `dependencies` is still met in later dialects, where it may be read as before (2020-12 core, appendix E).
  if (dialect === '2020-12' && !Object.hasOwn(schema, 'dependencies')) return schema;
  let upgraded: Record<string, JsonValue> = { ...schema };
  upgradeDependencies(upgraded);
  if (dialect !== 'openapi-3.0' && dialect !== '2020-12') upgradeItems(upgraded);
  if (dialect === 'draft-04' || dialect === 'openapi-3.0') {
    upgradeLimit(upgraded, 'minimum', 'exclusiveMinimum');
    upgradeLimit(upgraded, 'maximum', 'exclusiveMaximum');
  }
  if (dialect === 'openapi-3.0') upgraded = upgradeNullable(upgraded);
  return upgraded;
}

/** `exclusiveMinimum: true` beside `minimum: 5` becomes `exclusiveMinimum: 5`. */
function upgradeLimit(schema: Record<string, JsonValue>, limit: string, exclusive: string): void {
  const flag = schema[exclusive];
  if (typeof flag !== 'boolean') return;
  const bound = schema[limit];
  delete schema[exclusive];
  if (!flag || bound === undefined) return;
  delete schema[limit];
  schema[exclusive] = bound;
}

function upgradeItems(schema: Record<string, JsonValue>): void {
  const { items, additionalItems } = schema;
  delete schema['additionalItems'];
  if (!isArray(items)) return;
  delete schema['items'];
  if (items.length > 0) schema['prefixItems'] = items;
  if (additionalItems !== undefined) schema['items'] = additionalItems;
}

function upgradeDependencies(schema: Record<string, JsonValue>): void {
  const { dependencies } = schema;
  if (!isObject(dependencies)) return;
  delete schema['dependencies'];
  const required: Record<string, JsonValue> = {};
  const schemas: Record<string, JsonValue> = {};
  for (const [key, dependency] of Object.entries(dependencies)) {
    if (isArray(dependency)) required[key] = dependency;
    else schemas[key] = dependency;
  }
  if (Object.keys(required).length > 0) schema['dependentRequired'] = required;
  if (Object.keys(schemas).length > 0) schema['dependentSchemas'] = schemas;
}

/**
 * `nullable: true` lets null in. The specification has it change a `type` beside it alone, but documents also write it
 * beside allOf, oneOf, enum or nothing, always meaning this.
 */
function upgradeNullable(schema: Record<string, JsonValue>): Record<string, JsonValue> {
  const { nullable, ...rest } = schema;
  if (nullable !== true) return rest;
  const composed = ['allOf', 'anyOf', 'oneOf', 'not', 'enum', '$ref'].some((keyword) => keyword in rest);
  if (!composed) return typeof rest['type'] === 'string' ? { ...rest, type: [rest['type'], 'null'] } : rest;
  return orNull(rest);
}

function orNull(schema: JsonObject): Record<string, JsonValue> {
  return { anyOf: [schema, { type: 'null' }] };
}
