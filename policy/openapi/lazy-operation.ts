import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { type CompiledSchema, compileSchema } from '../schema/compile.ts';
import { member } from '../schema/dialect.ts';
import type { SchemaDocument } from '../schema/document.ts';
import type { ApiOperation } from './api.ts';
import { type BodySource, compileBody, flatBody } from './body.ts';
import { LazyBody, LazyParameter, type PlacedBody } from './lazy-parts.ts';
import type { OperationBody, Parameter } from './operation.ts';
import type { ParameterSource } from './parameters.ts';
import { readResult } from './result.ts';
import type { Selectable } from './selection.ts';
import { type Located, listOf, objectOf, textOf } from './source.ts';

/** What of the document an operation is made of. */
export interface OperationSources {
  readonly parameters: readonly ParameterSource[];
  readonly body: BodySource | undefined;
  readonly partial: readonly string[];
  /** Arguments that somebody else than the caller writes. */
  readonly left: readonly string[];
}

/** What an operation's parts become once they are asked for. */
interface Made {
  readonly parameters: readonly Parameter[];
  readonly body: OperationBody | undefined;
  readonly input: CompiledSchema<JsonObject>;
}

/** An operation whose schemas are read when first asked. */
export class LazyOperation implements ApiOperation {
  readonly name: string;
  readonly method: string;
  readonly pathTemplate: string;
  readonly tags: readonly string[];
  readonly writes: boolean;
  readonly hasMatrix: boolean;
  readonly #document: SchemaDocument;
  readonly #operation: Located;
  readonly #sources: OperationSources;
  readonly #swagger: boolean;
  readonly #selectable: Selectable;
  #made: Made | undefined;
  #result: { schema: CompiledSchema<JsonObject> | undefined } | undefined;

  constructor(
    document: SchemaDocument,
    selectable: Selectable,
    operation: Located,
    sources: OperationSources,
    swagger: boolean,
  ) {
    this.name = selectable.name;
    this.method = selectable.method;
    this.pathTemplate = selectable.pathTemplate;
    this.tags = selectable.tags;
    this.writes = selectable.method !== 'GET' && selectable.method !== 'HEAD';
    this.#document = document;
    this.#operation = operation;
    this.#sources = sources;
    this.#swagger = swagger;
    this.#selectable = selectable;
    this.hasMatrix = sources.parameters.some(({ style }) => style === 'matrix');
  }

  without(argument: string): ApiOperation {
    const sources = { ...this.#sources, left: [...this.#sources.left, argument] };
    return new LazyOperation(this.#document, this.#selectable, this.#operation, sources, this.#swagger);
  }

  get description(): string {
    return textOf(this.#operation.value, 'description') ?? textOf(this.#operation.value, 'summary') ?? '';
  }

  get parameters(): readonly Parameter[] {
    return this.#make().parameters;
  }

  get body(): OperationBody | undefined {
    return this.#make().body;
  }

  get input(): CompiledSchema<JsonObject> {
    return this.#make().input;
  }

  get partial(): readonly string[] {
    return [...this.#sources.partial, ...this.input.partial];
  }

  get result(): CompiledSchema<JsonObject> | undefined {
    this.#result ??= { schema: readResult(this.#document, this.#operation, this.#swagger) };
    return this.#result.schema;
  }

  #make(): Made {
    this.#made ??= makeOperation(this.#document, this.#sources);
    return this.#made;
  }
}

function makeOperation(document: SchemaDocument, { parameters, body, left }: OperationSources): Made {
  const properties: Record<string, JsonValue> = {};
  const required: string[] = [];
  const all = nameArguments(parameters);
  const named = all.filter(([argument]) => !left.includes(argument));
  for (const [argument, parameter] of named) {
    const schema = describedSchema(parameter);
    document.adopt(schema, parameter.scope);
    properties[argument] = schema;
    if (parameter.required) required.push(argument);
  }
  const taken = new Set(all.map(([argument]) => argument));
  const placed = body === undefined ? undefined : placeBody(document, body, taken);
  const hasBody = placed !== undefined && !isEmptyObject(placed);
  const schema: Record<string, JsonValue> = { type: 'object', properties };
  if (hasBody) addBody(schema, required, placed, left);
  if (required.length > 0) schema['required'] = required;
  const base = body?.scope.base ?? parameters[0]?.scope.base;
  const input = compileSchema(schema, { document, direction: 'request', ...(base === undefined ? {} : { base }) });
  return {
    parameters: named.map(([argument, source]) => new LazyParameter(argument, source, input)),
    body: hasBody ? new LazyBody(placed) : undefined,
    input,
  };
}

/** Documents describe a parameter beside its schema; a tool's arguments are described in it. */
function describedSchema({ schema, description }: ParameterSource): JsonObject | boolean {
  if (description === undefined || !isObject(schema)) return schema;
  if (Object.hasOwn(schema, '$ref') || Object.hasOwn(schema, 'description')) return schema;
  return { ...schema, description };
}

/** One argument name per parameter: its own, with the place behind it where the document gives one name twice. */
function nameArguments(parameters: readonly ParameterSource[]): [string, ParameterSource][] {
  const taken = new Set<string>();
  return parameters.map((parameter) => {
    const argument = taken.has(parameter.name) ? `${parameter.name}_${parameter.place}` : parameter.name;
    taken.add(argument);
    return [argument, parameter];
  });
}

function placeBody(document: SchemaDocument, source: BodySource, taken: ReadonlySet<string>): PlacedBody {
  const alone = compileBody(document, source);
  const flat = flatBody(document, source);
  const names = flat === undefined ? alone.topLevel : Object.keys(objectOf(flat.schema, 'properties') ?? {});
  const { kind } = alone;
  const objectsAlone = kind.isObject && !kind.isArray && kind.scalars.size === 0;
  const merges = names.length > 0 && names.every((name) => !taken.has(name)) && objectsAlone;
  // A schema that says itself that there are no others would refuse the parameters beside it.
  const beside = flat !== undefined || taken.size === 0 || !alone.sealed;
  const whole = taken.has('body') ? 'request_body' : 'body';
  const argument = merges && beside ? undefined : whole;
  if (flat !== undefined) {
    for (const child of Object.values(objectOf(flat.schema, 'properties') ?? {})) document.adopt(child, flat.scope);
    document.adopt(member(flat.schema, 'additionalProperties') ?? null, flat.scope);
  }
  return { source, argument, flat: argument === undefined ? flat : undefined, names, alone };
}

/** A body that may only be `{}` carries nothing. */
function isEmptyObject({ names, alone }: PlacedBody): boolean {
  return names.length === 0 && alone.sealed && alone.kind.isObject;
}

function addBody(
  schema: Record<string, JsonValue>,
  required: string[],
  placed: PlacedBody,
  left: readonly string[],
): void {
  const { source, argument, flat } = placed;
  if (argument !== undefined) {
    schema['properties'] = {
      ...(isObject(schema['properties']) ? schema['properties'] : {}),
      [argument]: source.schema,
    };
    if (source.required) required.push(argument);
  } else if (flat !== undefined) {
    schema['properties'] = {
      ...(isObject(schema['properties']) ? schema['properties'] : {}),
      ...Object.fromEntries(
        Object.entries(objectOf(flat.schema, 'properties') ?? {}).filter(([name]) => !left.includes(name)),
      ),
    };
    for (const name of listOf(flat.schema, 'required')) {
      if (typeof name === 'string' && !left.includes(name)) required.push(name);
    }
    const rest = member(flat.schema, 'additionalProperties');
    if (rest !== undefined) schema['additionalProperties'] = rest;
  } else {
    schema['allOf'] = [source.schema];
  }
}
