import { type JsonObject, type JsonValue, objectOf } from '../../receipts/json-value.ts';

/**
 * The configuration reference as Markdown: one table for the top level and one for each mapping of the schema, in the
 * order in which words first lead there. `schema` is gateway.schema.json.
 */
export function renderConfigReference(schema: JsonObject): string {
  const defs = objectOf(schema['$defs']);
  const sections = new Map<string, string>([['', renderSection(schema, defs)]]);
  const queue = refsOf(schema);
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
    if (sections.has(name)) continue;
    const definition = objectOf(defs[name]);
    if (Object.keys(objectOf(definition['properties'])).length === 0) {
      sections.set(name, '');
    } else {
      sections.set(
        name,
        `### \`${name}\`\n\n${textOf(definition['description'])}\n\n${renderSection(definition, defs)}`,
      );
    }
    queue.push(...refsOf(definition));
  }
  const values = [...NAMED].map((name) => `| ${name} | ${cell(textOf(objectOf(defs[name])['description']))} |`);
  const legend = `### Values\n\n| value | how it is written |\n|---|---|\n${values.join('\n')}\n`;
  return [...sections.values(), legend].filter((text) => text !== '').join('\n');
}

function renderSection(definition: JsonObject, defs: JsonObject): string {
  const required = [definition['required'] ?? []].flat();
  const rows = Object.entries(objectOf(definition['properties']))
    .filter(([word]) => word !== '$schema')
    .map(([word, value]) => {
      const member = objectOf(value);
      const fallback = Object.hasOwn(member, 'default')
        ? `\`${JSON.stringify(member['default'])}\``
        : required.includes(word)
          ? 'required'
          : '';
      return `| \`${word}\` | ${cell(typeText(member, defs))} | ${cell(fallback)} | ${cell(textOf(member['description']))} |`;
    });
  return `| word | value | default | meaning |\n|---|---|---|---|\n${rows.join('\n')}\n`;
}

/** What a word takes, in a few words; a mapping is named by its section. */
function typeText(member: JsonObject, defs: JsonObject): string {
  const ref = refOf(member);
  if (ref !== undefined) return definitionText(ref, defs);
  if (Array.isArray(member['anyOf'])) {
    return (member['anyOf'] as readonly JsonValue[]).map((branch) => typeText(objectOf(branch), defs)).join(' or ');
  }
  if (Array.isArray(member['enum']))
    return (member['enum'] as readonly JsonValue[]).map((word) => `\`${String(word)}\``).join(', ');
  switch (member['type']) {
    case 'array':
      return `list of ${typeText(objectOf(member['items']), defs)}`;
    case 'object': {
      const values = objectOf(member['additionalProperties']);
      return Object.keys(values).length === 0 ? 'mapping' : `mapping of name to ${typeText(values, defs)}`;
    }
    case 'boolean':
      return '`true`, `false`';
    case 'integer':
      return `whole number${rangeText(member)}`;
    case 'string':
      return 'text';
    default:
      return textOf(member['type']) || 'value';
  }
}

/** Definitions whose own name says it best. */
const NAMED: ReadonlySet<string> = new Set(['duration', 'size', 'digest', 'instant', 'path', 'name', 'decimal']);

function definitionText(name: string, defs: JsonObject): string {
  const definition = objectOf(defs[name]);
  if (Object.keys(objectOf(definition['properties'])).length > 0) return `[\`${name}\`](#${name.toLowerCase()})`;
  if (NAMED.has(name)) return name;
  if (name === 'jsonSchema') return 'JSON Schema';
  return typeText(definition, defs);
}

function rangeText(member: JsonObject): string {
  const { minimum, maximum } = member as { minimum?: number; maximum?: number };
  if (minimum === undefined) return '';
  return maximum === undefined ? ` from ${minimum}` : ` from ${minimum} to ${maximum}`;
}

/** Names of the definitions that a schema leads to, in order. */
function refsOf(value: JsonValue): string[] {
  if (Array.isArray(value)) return value.flatMap(refsOf);
  if (value === null || typeof value !== 'object') return [];
  const object = value as JsonObject;
  const own = refOf(object);
  return [
    ...(own === undefined ? [] : [own]),
    ...Object.entries(object).flatMap(([key, member]) => (key === '$defs' ? [] : refsOf(member))),
  ];
}

function refOf(member: JsonObject): string | undefined {
  const ref = member['$ref'];
  return typeof ref === 'string' ? ref.replace('#/$defs/', '') : undefined;
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
