import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { type CompiledSchema, compileSchema } from '../schema/compile.ts';
import { isSchema, member } from '../schema/dialect.ts';
import type { SchemaDocument, Scope } from '../schema/document.ts';
import { TEXT_KIND } from '../schema/kinds.ts';
import type { BodyFormat, FormField, ParameterStyle } from './operation.ts';
import type { SwaggerBody } from './parameters.ts';
import { follow, objectOf, textOf } from './source.ts';

/** A body as the document has it. */
export interface BodySource {
  readonly format: BodyFormat;
  readonly contentType: string;
  readonly required: boolean;
  readonly schema: JsonObject | boolean;
  readonly scope: Scope;
  /** `encoding` of form fields (OpenAPI 3.x, Encoding Object). */
  readonly encoding: JsonObject;
}

/** A body, none, or why there is one that cannot be carried. */
export type BodyReading = { readonly body: BodySource | undefined } | { readonly unsupported: string };

/** Whether a media type is JSON: `application/json`, `+json` types, and ranges that take it. */
export function isJsonType(mediaType: string): boolean {
  return /^(?:application\/(?:json|\*)|\*\/\*|[\w.+-]+\/[\w.+-]+\+json)(?:\s*;|$)/i.test(mediaType);
}

function formatOf(mediaType: string): BodyFormat | undefined {
  if (isJsonType(mediaType)) return 'json';
  if (/^application\/x-www-form-urlencoded(?:\s*;|$)/i.test(mediaType)) return 'form';
  return /^multipart\/form-data(?:\s*;|$)/i.test(mediaType) ? 'multipart' : undefined;
}

const PREFERENCE: readonly BodyFormat[] = ['json', 'form', 'multipart'];

/** Reads `requestBody` of OpenAPI 3.x: JSON where it is offered, else a form. */
export function readRequestBody(document: SchemaDocument, value: JsonValue | undefined, scope: Scope): BodyReading {
  if (value === undefined) return { body: undefined };
  const located = follow(document, value, scope);
  if (located === undefined) return { unsupported: 'its body is a reference that leads nowhere' };
  const required = member(located.value, 'required') === true;
  const content = Object.entries(objectOf(located.value, 'content') ?? {});
  for (const format of PREFERENCE) {
    const found = content.find(([type]) => formatOf(type) === format);
    if (found === undefined) continue;
    const media = isObject(found[1]) ? found[1] : {};
    const schema = member(media, 'schema');
    const contentType = format === 'json' && found[0].includes('*') ? 'application/json' : found[0];
    return {
      body: {
        format,
        contentType: contentType.toLowerCase(),
        required,
        schema: isSchema(schema) ? schema : true,
        scope: located.scope,
        encoding: objectOf(media, 'encoding') ?? {},
      },
    };
  }
  const types = content.map(([type]) => `\`${type}\``).join(', ');
  if (required && content.length > 0) return { unsupported: `its body can only be sent as ${types}` };
  return { body: undefined };
}

/** Reads the body of Swagger 2.0: a `body` parameter, or `formData` fields. */
export function readSwaggerBody(swagger: SwaggerBody, consumes: readonly string[]): BodyReading {
  const { body, fields } = swagger;
  if (body !== undefined) {
    const types = consumes.length === 0 ? ['application/json'] : consumes;
    const type = types.find(isJsonType);
    if (type === undefined)
      return { unsupported: `its body can only be sent as ${types.map((t) => `\`${t}\``).join(', ')}` };
    const schema = member(body.value, 'schema');
    return {
      body: {
        format: 'json',
        contentType: type.includes('*') ? 'application/json' : type,
        required: member(body.value, 'required') === true,
        schema: isSchema(schema) ? schema : true,
        scope: body.scope,
        encoding: {},
      },
    };
  }
  const first = fields[0];
  if (first === undefined) return { body: undefined };
  if (fields.some(({ file, required }) => file && required))
    return { unsupported: 'it needs a file, which is no argument' };
  const texts = fields.filter(({ file }) => !file);
  const multipart = consumes.length > 0 && !consumes.includes('application/x-www-form-urlencoded');
  const required = texts.filter((field) => field.required).map(({ name }) => name);
  return {
    body: {
      format: multipart ? 'multipart' : 'form',
      contentType: multipart ? 'multipart/form-data' : 'application/x-www-form-urlencoded',
      required: required.length > 0,
      schema: {
        type: 'object',
        properties: Object.fromEntries(texts.map(({ name, schema }) => [name, schema])),
        ...(required.length > 0 ? { required } : {}),
      },
      scope: first.scope,
      encoding: Object.fromEntries(texts.map(({ name, style, explode }) => [name, { style, explode }])),
    },
  };
}

const COMPOSING = ['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentSchemas', 'discriminator'];
const FLAT_MEMBERS: ReadonlySet<string> = new Set([
  'type',
  'properties',
  'required',
  'additionalProperties',
  'title',
  'description',
  'example',
  'examples',
  'xml',
  'externalDocs',
  '$schema',
  '$id',
  'deprecated',
]);

/** The object schema that a body comes to, where its members can stand at the top of the arguments by themselves. */
export function flatBody(document: SchemaDocument, body: BodySource): { schema: JsonObject; scope: Scope } | undefined {
  const located = follow(document, body.schema, body.scope);
  if (located === undefined) return undefined;
  const { value: schema, scope } = located;
  if (COMPOSING.some((keyword) => Object.hasOwn(schema, keyword))) return undefined;
  if (!Object.keys(schema).every((key) => FLAT_MEMBERS.has(key) || key.startsWith('x-'))) return undefined;
  const type = member(schema, 'type');
  const isObjectSchema = type === 'object' || (type === undefined && objectOf(schema, 'properties') !== undefined);
  return isObjectSchema && objectOf(schema, 'properties') !== undefined ? { schema, scope } : undefined;
}

const FIELD_STYLES: readonly string[] = ['form', 'spaceDelimited', 'pipeDelimited', 'tabDelimited', 'deepObject'];

/** How the fields of a form are carried. Objects whose encoding says nothing are JSON in multipart, exploded in forms. */
export function readFields(body: BodySource, input: CompiledSchema, names: readonly string[]): Map<string, FormField> {
  return new Map(
    names.map((name): [string, FormField] => {
      const encoding = objectOf(body.encoding, name) ?? {};
      const kind = input.kindOf(name) ?? TEXT_KIND;
      const contentType = textOf(encoding, 'contentType');
      const json = contentType !== undefined && isJsonType(contentType);
      const declared = textOf(encoding, 'style');
      const style =
        declared !== undefined && FIELD_STYLES.includes(declared) ? (declared as ParameterStyle) : undefined;
      const nested = kind.isObject || (kind.isArray && kind.item().isObject);
      const explode = member(encoding, 'explode');
      const plain: ParameterStyle = body.format === 'form' && nested ? 'deepObject' : 'form';
      const field: FormField = {
        style: json ? 'json' : (style ?? plain),
        explode: typeof explode === 'boolean' ? explode : true,
        kind,
      };
      return [name, contentType === undefined ? field : { ...field, contentType }];
    }),
  );
}

/** The compiled schema of a body alone, for what its members are. */
export function compileBody(document: SchemaDocument, body: BodySource): CompiledSchema {
  document.adopt(body.schema, body.scope);
  return compileSchema(body.schema, { document, base: body.scope.base, direction: 'request' });
}
