import type { ApiFiles } from '../../policy/openapi/read-api.ts';
import type { JsonValue } from '../../receipts/json-value.ts';

const MAX_COMPLAINTS = 20;

/**
 * Holds a document against the official schema of its OpenAPI version. Returns what is wrong, each with the pointer of
 * its place, at most 20; empty where nothing is. A document of several files is not looked at: the validator knows none
 * but the first. This takes longer than loading does (a second and a half for 13 MB), so it belongs to `toolgate
 * validate` and not to a start.
 */
export async function validateApiDocument(source: ApiFiles): Promise<readonly string[]> {
  const root = source.files.get(source.root);
  if (source.files.size !== 1 || root === undefined) return [];
  // A start needs none of it.
  const { Validator } = await import('@seriousme/openapi-schema-validator');
  const result = await new Validator().validate(copyForValidator(root) as Record<string, unknown>);
  if (result.valid) return [];
  if (typeof result.errors === 'string') return [result.errors];
  const complaints = (result.errors ?? []).map(
    ({ instancePath, message }) => `${instancePath === '' ? 'the document' : `\`${instancePath}\``} ${message}`,
  );
  return [...new Set(complaints)].slice(0, MAX_COMPLAINTS);
}

/**
 * The validator takes a property *named* `$ref` for a reference and gives up, and does not know references to other
 * files: the first is renamed and the second taken out, in a copy that is only looked at.
 */
function copyForValidator(value: JsonValue): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: JsonValue) => copyForValidator(item));
  const members = Object.entries(value).flatMap(([key, child]): [string, unknown][] => {
    if (key !== '$ref') return [[key, copyForValidator(child)]];
    if (typeof child !== 'string') return [['property named $ref', copyForValidator(child)]];
    return child.startsWith('#') ? [[key, child]] : [];
  });
  return Object.fromEntries(members);
}
