import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { member, SUBSCHEMA_KEYWORDS, upgradeSchema } from './dialect.ts';
import type { SchemaNode } from './node.ts';

/** Keywords that mean nothing outside the file or dialect they were written in. */
const DROPPED: ReadonlySet<string> = new Set([
  '$schema',
  '$id',
  'id',
  '$anchor',
  '$dynamicAnchor',
  '$recursiveAnchor',
  '$ref',
  '$dynamicRef',
  '$recursiveRef',
  '$vocabulary',
  'discriminator',
  'xml',
  'externalDocs',
  'nullable',
]);

/**
 * Writes a schema as one that stands by itself: every schema that a reference leads to becomes a `$defs` member, other
 * dialects become 2020-12, what the direction does not carry is gone. Descriptions and examples stay. Cycles are fine.
 */
export function renderSchema(root: SchemaNode): JsonObject {
  const names = new Map<SchemaNode, string>();
  const taken = new Set<string>();
  const queue: [SchemaNode, string][] = [];
  const refer = (target: SchemaNode, wanted: string): string => {
    let name = names.get(target);
    if (name === undefined) {
      name = wanted;
      for (let i = 2; taken.has(name); i++) name = `${wanted}_${i}`;
      names.set(target, name);
      taken.add(name);
      queue.push([target, name]);
    }
    return `#/$defs/${name}`;
  };
  const top = renderNode(root, refer);
  const defs: Record<string, JsonValue> = {};
  for (const [node, name] of queue) defs[name] = renderNode(node, refer);
  const schema = isObject(top) ? top : top === true ? {} : { not: {} };
  return taken.size === 0 ? schema : { ...schema, $defs: defs };
}

type Refer = (target: SchemaNode, wanted: string) => string;

function renderNode(node: SchemaNode, refer: Refer): JsonValue {
  if (node.always !== undefined) return node.always;
  const out: Record<string, JsonValue> = {};
  const source = isObject(node.source) ? upgradeSchema(node.source, node.dialect) : {};
  for (const [keyword, value] of Object.entries(source)) {
    const kept = !SUBSCHEMA_KEYWORDS.has(keyword) && !DROPPED.has(keyword) && !keyword.startsWith('x-');
    if (kept) out[keyword] = value;
  }
  const { required } = node.assertions;
  if (required !== undefined) out['required'] = required;
  const target = node.reference();
  if (target !== undefined) out['$ref'] = refer(target, wantedName(node));
  const render = (child: SchemaNode): JsonValue => renderNode(child, refer);
  for (const keyword of ['properties', 'dependentSchemas'] as const) {
    const children = node[keyword];
    if (children !== undefined && (children.size > 0 || keyword === 'properties')) {
      out[keyword] = Object.fromEntries([...children].map(([name, child]) => [name, render(child)]));
    }
  }
  if (node.patternProperties.length > 0) {
    out['patternProperties'] = Object.fromEntries(
      node.patternProperties.map(({ source: pattern, node: child }) => [pattern, render(child)]),
    );
  }
  for (const keyword of ['prefixItems', 'allOf', 'anyOf', 'oneOf'] as const) {
    if (node[keyword].length > 0) out[keyword] = node[keyword].map(render);
  }
  for (const [keyword, child] of singles(node)) if (child !== undefined) out[keyword] = render(child);
  return out;
}

function singles(node: SchemaNode): [string, SchemaNode | undefined][] {
  return [
    ['additionalProperties', node.additionalProperties],
    ['unevaluatedProperties', node.unevaluatedProperties],
    ['propertyNames', node.propertyNames],
    ['items', node.items],
    ['unevaluatedItems', node.unevaluatedItems],
    ['contains', node.contains],
    ['not', node.not],
    ['if', node.condition],
    ['then', node.consequence],
    ['else', node.alternative],
  ];
}

/** The last part of the reference, in letters that need no escaping in a pointer. */
function wantedName(node: SchemaNode): string {
  const reference = isObject(node.source) ? member(node.source, '$ref') : undefined;
  const last = typeof reference === 'string' ? (reference.split(/[/#]/).at(-1) ?? '') : '';
  return last.replace(/[^A-Za-z0-9_.-]+/g, '_') || 'schema';
}
