import { isArray, type JsonValue } from '../../receipts/json-value.ts';
import { FORMATS } from './formats.ts';
import type { SchemaNode } from './node.ts';
import { inPlaceBranches, inPlaceNodes, opennessOf } from './shape.ts';

/**
 * How a node is written for ajv: `closed` as the schema of a place (undeclared names refused there and below), `open` as
 * one of several that apply at a place that is closed as a whole, `bare` as it stands: a condition (`if`, `not`,
 * `contains`) asks what the document says, and closing it would turn its answer round. `bare_branch` is `bare` where what
 * it evaluates counts for the place that it is part of.
 */
export type Variant = 'closed' | 'open' | 'bare' | 'bare_branch';

/** Which values an ajv schema is written for: `exact` ones hold integers beyond ±(2^53-1). */
export type Precision = 'double' | 'exact';

/**
 * What a lowered schema is for: to `decide`, or to `tell` the faults of what was refused. ajv counts what a failed `if`
 * evaluated as evaluated, so the deciding form spells conditions out; the telling one keeps them, for their messages.
 */
type Purpose = 'decide' | 'tell';

/** How a schema is lowered. */
export interface Lowering {
  readonly precision: Precision;
  readonly purpose: Purpose;
}

/** A schema as ajv takes it. */
export type AjvSchema = boolean | { [keyword: string]: unknown };

/** What is done with the references that a lowered schema holds; each answers the id to refer to. */
export interface Referrer {
  /** For ajv's own `$ref`, which knows what the target evaluates: the target is compiled with this schema. */
  now(node: SchemaNode, variant: Variant): string;
  /** For `lazyRef`, which does not: the target is compiled when a value first reaches it. */
  later(node: SchemaNode, variant: Variant): string;
}

/** Numeric keywords and the names of those of ours that compare both kinds of number. */
const EXACT: ReadonlyMap<string, string> = new Map([
  ['type', 'exactType'],
  ['enum', 'exactEnum'],
  ['const', 'exactConst'],
  ['minimum', 'exactMinimum'],
  ['maximum', 'exactMaximum'],
  ['exclusiveMinimum', 'exactExclusiveMinimum'],
  ['exclusiveMaximum', 'exactExclusiveMaximum'],
  ['format', 'exactFormat'],
]);

/** The keyword of JSON Schema that one of ours stands for. */
export const PUBLIC_KEYWORDS: ReadonlyMap<string, string> = new Map([
  ...[...EXACT].map(([keyword, exact]): [string, string] => [exact, keyword]),
  ['exactMultipleOf', 'multipleOf'],
  ['distinctItems', 'uniqueItems'],
  ['unevaluatedProperties', 'additionalProperties'],
  ['false schema', 'false'],
]);

/** Writes a node, and all below it up to references, as one ajv schema. */
export function lowerSchema(node: SchemaNode, variant: Variant, lowering: Lowering, refer: Referrer): AjvSchema {
  if (node.always !== undefined) return node.always;
  const lower = (child: SchemaNode, as: Variant): AjvSchema => lowerSchema(child, as, lowering, refer);
  const bare = variant === 'bare' || variant === 'bare_branch';
  const place: Variant = bare ? 'bare' : 'closed';
  const branch: Variant = bare ? 'bare_branch' : 'open';
  const out: { [keyword: string]: unknown } = lowerAssertions(node, lowering.precision);
  const target = node.reference();
  if (target !== undefined && isPureReference(node)) {
    if (variant === place) out['lazyRef'] = refer.later(target, variant);
    else out['$ref'] = refer.now(target, variant);
    return out;
  }
  if (target !== undefined) out['$ref'] = refer.now(target, branch);
  if (node.properties !== undefined) lowerProperties(node.properties, out, (child) => lower(child, place));
  if (node.patternProperties.length > 0) {
    out['patternProperties'] = Object.fromEntries(
      node.patternProperties.map(({ source, node: child }) => [source, lower(child, place)]),
    );
  }
  if (node.prefixItems.length > 0) out['prefixItems'] = node.prefixItems.map((child) => lower(child, place));
  for (const keyword of ['additionalProperties', 'unevaluatedProperties', 'items', 'unevaluatedItems'] as const) {
    const child = node[keyword];
    if (child !== undefined) out[keyword] = lower(child, place);
  }
  for (const keyword of ['allOf', 'anyOf', 'oneOf'] as const) {
    if (node[keyword].length > 0) append(out, keyword, ...node[keyword].map((child) => lower(child, branch)));
  }
  if (node.dependentSchemas.size > 0) {
    out['dependentSchemas'] = record(node.dependentSchemas, (child) => lower(child, branch));
  }
  for (const keyword of ['propertyNames', 'contains', 'not'] as const) {
    const child = node[keyword];
    if (child !== undefined && !(keyword === 'contains' && asksNoItem(node))) out[keyword] = lower(child, 'bare');
  }
  lowerCondition(node, out, lowering.purpose, lower, branch);
  if (variant === 'closed' && opennessOf(inPlaceNodes([node])).closed) close(node, target, out);
  return out;
}

function append(out: { [keyword: string]: unknown }, keyword: string, ...schemas: AjvSchema[]): void {
  const before: unknown = out[keyword];
  out[keyword] = [...(Array.isArray(before) ? before : []), ...schemas];
}

/** ajv nests the code of each property in that of the one before; long lists are cut so that no stack overflows. */
const PROPERTIES_AT_ONCE = 200;

function lowerProperties(
  properties: ReadonlyMap<string, SchemaNode>,
  out: { [keyword: string]: unknown },
  lower: (child: SchemaNode) => AjvSchema,
): void {
  if (properties.size <= PROPERTIES_AT_ONCE) {
    out['properties'] = record(properties, lower);
    return;
  }
  const names = [...properties];
  out['properties'] = Object.fromEntries(names.map(([name]) => [name, true]));
  for (let i = 0; i < names.length; i += PROPERTIES_AT_ONCE) {
    append(out, 'allOf', { properties: record(new Map(names.slice(i, i + PROPERTIES_AT_ONCE)), lower) });
  }
}

/** `minContains: 0` without a maximum is satisfied by every array; ajv in strict mode would refuse to compile it. */
function asksNoItem(node: SchemaNode): boolean {
  return Number(node.assertions['minContains'] ?? 1) === 0 && node.assertions['maxContains'] === undefined;
}

function lowerCondition(
  node: SchemaNode,
  out: { [keyword: string]: unknown },
  purpose: Purpose,
  lower: (child: SchemaNode, as: Variant) => AjvSchema,
  branch: Variant,
): void {
  const { condition, consequence, alternative } = node;
  if (condition === undefined) return;
  const test = lower(condition, 'bare_branch');
  const positive = consequence === undefined ? true : lower(consequence, branch);
  const negative = alternative === undefined ? true : lower(alternative, branch);
  if (purpose === 'tell' && (consequence !== undefined || alternative !== undefined)) {
    Object.assign(out, { if: test, else: negative });
    out['then'] = positive;
    return;
  }
  // Even without consequences, what the condition evaluates counts as evaluated (2020-12 core 10.2.2).
  const spelt = { anyOf: [{ allOf: [test, positive] }, { allOf: [{ not: test }, negative] }] };
  append(out, 'allOf', spelt);
}

/** Refuses undeclared names, where the node says nothing of them itself. */
function close(node: SchemaNode, target: SchemaNode | undefined, out: { [keyword: string]: unknown }): void {
  if (node.additionalProperties !== undefined || node.unevaluatedProperties !== undefined) return;
  const composed = target !== undefined || !inPlaceBranches(node).next().done;
  out[composed ? 'unevaluatedProperties' : 'additionalProperties'] = false;
}

/** A node that is a reference and assertions of its own: what it refers to may be closed in its stead. */
function isPureReference(node: SchemaNode): boolean {
  return (
    node.properties === undefined &&
    node.patternProperties.length === 0 &&
    node.additionalProperties === undefined &&
    node.unevaluatedProperties === undefined &&
    node.unevaluatedItems === undefined &&
    node.prefixItems.length === 0 &&
    node.items === undefined &&
    node.contains === undefined &&
    node.propertyNames === undefined &&
    node.not === undefined &&
    inPlaceBranches(node).next().done === true
  );
}

function record(
  nodes: ReadonlyMap<string, SchemaNode>,
  lower: (child: SchemaNode) => AjvSchema,
): Record<string, AjvSchema> {
  return Object.fromEntries([...nodes].map(([name, child]) => [name, lower(child)]));
}

function lowerAssertions(node: SchemaNode, precision: Precision): { [keyword: string]: unknown } {
  const out: { [keyword: string]: unknown } = {};
  for (const [keyword, value] of Object.entries(node.assertions)) {
    if (keyword === 'multipleOf') out['exactMultipleOf'] = value;
    else if (keyword === 'uniqueItems') {
      if (value === true) out['distinctItems'] = true;
    } else if (keyword === 'enum' && isArray(value) && value.length === 0) {
      out['exactEnum'] = value;
    } else if (
      (keyword === 'minContains' || keyword === 'maxContains') &&
      (node.contains === undefined || asksNoItem(node))
    ) {
      // Asserts nothing without `contains`; ajv in strict mode would refuse it.
    } else if (keyword === 'required' && isArray(value)) {
      const names = [...new Set(value)];
      if (names.length > 0) out['required'] = names;
    } else {
      const exact = EXACT.get(keyword);
      out[exact !== undefined && needsExact(keyword, value, precision) ? exact : keyword] = value;
    }
  }
  return out;
}

function needsExact(keyword: string, value: JsonValue, precision: Precision): boolean {
  if (keyword === 'format') return precision === 'exact' && FORMATS.get(String(value))?.type === 'number';
  if (precision === 'exact') return true;
  return keyword !== 'type' && holdsBigInteger(value);
}

function holdsBigInteger(value: JsonValue): boolean {
  if (typeof value === 'bigint') return true;
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some((item: JsonValue) => holdsBigInteger(item));
}
