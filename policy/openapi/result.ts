import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { type CompiledSchema, compileSchema } from '../schema/compile.ts';
import { member } from '../schema/dialect.ts';
import type { SchemaDocument } from '../schema/document.ts';
import { isJsonType } from './body.ts';
import { follow, type Located, objectOf } from './source.ts';

/** The schema of the first successful answer that is JSON. */
export function readResult(
  document: SchemaDocument,
  operation: Located,
  swagger: boolean,
): CompiledSchema<JsonObject> | undefined {
  const responses = objectOf(operation.value, 'responses') ?? {};
  const codes = Object.keys(responses)
    .filter((code) => /^2(?:\d\d|XX)$/i.test(code))
    .sort();
  for (const code of codes) {
    const response = follow(document, member(responses, code), operation.scope);
    if (response === undefined) continue;
    let schema: JsonValue | undefined;
    if (swagger) schema = member(response.value, 'schema');
    else {
      const media = Object.entries(objectOf(response.value, 'content') ?? {}).find(([type]) => isJsonType(type))?.[1];
      schema = isObject(media) ? member(media, 'schema') : undefined;
    }
    if (!isObject(schema)) continue;
    document.adopt(schema, response.scope);
    return compileSchema(schema, { document, base: response.scope.base, direction: 'response' });
  }
  return undefined;
}
