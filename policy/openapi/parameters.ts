import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { isSchema, member } from '../schema/dialect.ts';
import type { SchemaDocument, Scope } from '../schema/document.ts';
import type { ParameterPlace, ParameterStyle } from './operation.ts';
import { follow, isReservedHeader, type Located, objectOf, textOf } from './source.ts';

/** A parameter as the document has it, before its schema is read. */
export interface ParameterSource {
  readonly name: string;
  readonly place: ParameterPlace;
  readonly style: ParameterStyle;
  readonly explode: boolean;
  readonly required: boolean;
  readonly schema: JsonObject | boolean;
  readonly scope: Scope;
  readonly description: string | undefined;
}

/** A body parameter or form field of Swagger 2.0. */
export interface SwaggerBody {
  readonly body: Located | undefined;
  readonly fields: readonly (ParameterSource & { readonly file: boolean })[];
}

const PLACES: ReadonlySet<string> = new Set(['path', 'query', 'header', 'cookie']);
const DEFAULT_STYLES: Readonly<Record<ParameterPlace, ParameterStyle>> = {
  path: 'simple',
  query: 'form',
  header: 'simple',
  cookie: 'form',
};
const STYLES: Readonly<Record<ParameterPlace, readonly string[]>> = {
  path: ['simple', 'label', 'matrix'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'],
  header: ['simple'],
  cookie: ['form', 'cookie'],
};

/**
 * The parameters of an operation: its own, and those of its path that it does not override (OpenAPI 3.1, Path Item
 * Object). What cannot be carried is left out, with the reason in `partial`; `withoutHeaders` without one, since others
 * write them.
 */
export function readParameters(
  document: SchemaDocument,
  lists: readonly { readonly list: readonly JsonValue[]; readonly scope: Scope }[],
  partial: string[],
  withoutHeaders: ReadonlySet<string> = NO_HEADERS,
): { parameters: ParameterSource[]; swagger: SwaggerBody } {
  const found = new Map<string, ParameterSource>();
  const fields = new Map<string, ParameterSource & { file: boolean }>();
  let body: Located | undefined;
  for (const { list, scope } of lists) {
    for (const entry of list) {
      const parameter = follow(document, entry, scope);
      if (parameter === undefined) {
        partial.push('a parameter is a reference that leads nowhere');
        continue;
      }
      const place = textOf(parameter.value, 'in') ?? '';
      const name = textOf(parameter.value, 'name') ?? '';
      if (place === 'body') body = parameter;
      else if (place === 'formData') {
        const file = textOf(parameter.value, 'type') === 'file';
        fields.set(name, { ...readParameter(parameter, name, 'query', partial), file });
      } else if (isPlace(place)) {
        // OpenAPI 3.0.3, Parameter Object: Accept, Content-Type and Authorization parameters are ignored.
        if (place === 'header' && withoutHeaders.has(name.toLowerCase())) continue;
        if (place === 'header' && isReservedHeader(name)) {
          if (member(parameter.value, 'required') === true && name.toLowerCase() !== 'idempotency-key')
            partial.push(`the header \`${name}\` cannot be an argument`);
        } else found.set(`${place} ${name}`, readParameter(parameter, name, place, partial));
      } else partial.push(`the parameter \`${name}\` stands in \`${place}\`, which is not known`);
    }
  }
  return { parameters: [...found.values()], swagger: { body, fields: [...fields.values()] } };
}

const NO_HEADERS: ReadonlySet<string> = new Set();

function isPlace(place: string): place is ParameterPlace {
  return PLACES.has(place);
}

function readParameter(
  { value, scope }: Located,
  name: string,
  place: ParameterPlace,
  partial: string[],
): ParameterSource {
  const description = textOf(value, 'description');
  const required = place === 'path' || member(value, 'required') === true;
  const content = Object.values(objectOf(value, 'content') ?? {})[0];
  if (content !== undefined) {
    const schema = isObject(content) ? member(content, 'schema') : undefined;
    return {
      name,
      place,
      style: 'json',
      explode: false,
      required,
      schema: isSchema(schema) ? schema : true,
      scope,
      description,
    };
  }
  const schema = member(value, 'schema');
  if (!isSchema(schema)) return readSwaggerParameter(value, scope, name, place, required);
  const declared = textOf(value, 'style');
  let style = DEFAULT_STYLES[place];
  if (declared !== undefined && declared !== style) {
    if (STYLES[place].includes(declared)) style = declared === 'cookie' ? 'form' : (declared as ParameterStyle);
    else partial.push(`the style \`${declared}\` of \`${name}\` is not known in a ${place}`);
  }
  const explode = member(value, 'explode');
  return {
    name,
    place,
    style,
    explode: typeof explode === 'boolean' ? explode : style === 'form',
    required,
    schema,
    scope,
    description,
  };
}

const SWAGGER_STYLES: Readonly<Record<string, { style: ParameterStyle; explode: boolean }>> = {
  ssv: { style: 'spaceDelimited', explode: false },
  pipes: { style: 'pipeDelimited', explode: false },
  tsv: { style: 'tabDelimited', explode: false },
  multi: { style: 'form', explode: true },
};

const PARAMETER_MEMBERS: ReadonlySet<string> = new Set(['name', 'in', 'required', 'collectionFormat', 'description']);

/** In Swagger 2.0 a parameter is its own schema (Parameter Object); lists are joined by `collectionFormat`. */
function readSwaggerParameter(
  value: JsonObject,
  scope: Scope,
  name: string,
  place: ParameterPlace,
  required: boolean,
): ParameterSource {
  const members = Object.entries(value).filter(([key]) => !PARAMETER_MEMBERS.has(key));
  const schema = Object.fromEntries(members);
  const description = textOf(value, 'description');
  const csv = { style: DEFAULT_STYLES[place], explode: false };
  return {
    name,
    place,
    required,
    schema,
    scope,
    description,
    ...(SWAGGER_STYLES[textOf(value, 'collectionFormat') ?? ''] ?? csv),
  };
}
