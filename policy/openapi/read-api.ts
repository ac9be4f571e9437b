import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { Router, RoutingError, templateParameters } from '../routing.ts';
import { type CompiledSchema, compileSchema } from '../schema/compile.ts';
import { isObject, isSchema, member } from '../schema/dialect.ts';
import { SchemaDocument, type Scope } from '../schema/document.ts';
import { TEXT_KIND, type ValueKind } from '../schema/kinds.ts';
import { type Api, ApiError, type ApiOperation, type ApiSelection, type RefusedOperation } from './api.ts';
import {
  type BodySource,
  compileBody,
  flatBody,
  isJsonType,
  readFields,
  readRequestBody,
  readSwaggerBody,
} from './body.ts';
import type { FormField, OperationBody, Parameter } from './operation.ts';
import { type ParameterSource, readParameters } from './parameters.ts';
import { isSelected, refuseClash, type Selectable, toolName } from './selection.ts';
import { follow, type Located, listOf, objectOf, textOf, versionOf } from './source.ts';

/** A parsed document: its files by absolute URI, and which of them is the root. */
export interface ApiFiles {
  readonly root: string;
  readonly files: ReadonlyMap<string, JsonValue>;
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace', 'query'] as const;

/**
 * Reads a Swagger 2.0 or OpenAPI 3.0-3.2 document into tools. No schema is read yet. Throws `ApiError` for what is no
 * such document or names two operations alike, `RoutingError` for two that match the same requests; an operation that
 * cannot be called is in `refused`, and the others work.
 */
export function readApi(source: ApiFiles, selection: ApiSelection = {}): Api {
  const root = source.files.get(source.root);
  if (!isObject(root)) throw new ApiError('api_invalid', 'the document must be an object');
  const version = versionOf(root);
  const document = new SchemaDocument({
    dialect: version === '2.0' || version === '3.0' ? 'openapi-3.0' : '2020-12',
    files: source.files,
    identifiers: false,
  });
  const scope = document.scopeOfFile(source.root);
  const reader = new ApiReader(document, root, scope, version === '2.0', selection);
  reader.readPaths();
  // Refuses templates that match the same requests; the route builds its own router from all of its tools.
  new Router(reader.operations, { crossing: 'refuse_request' });
  return {
    version,
    title: textOf(objectOf(root, 'info') ?? {}, 'title') ?? '',
    basePath: basePathOf(root, version === '2.0'),
    operations: reader.operations,
    refused: reader.refused,
  };
}

function basePathOf(root: JsonObject, swagger: boolean): string {
  if (swagger) return trimBase(textOf(root, 'basePath') ?? '');
  const server = listOf(root, 'servers')[0];
  return isObject(server) ? trimBase(serverPath(server)) : '';
}

/** The path of a server's URL, its variables at their defaults. */
function serverPath(server: JsonObject): string {
  const variables = objectOf(server, 'variables') ?? {};
  const url = (textOf(server, 'url') ?? '').replace(/\{([^{}]*)\}/g, (_, name: string) => {
    const variable = member(variables, name);
    return isObject(variable) ? String(member(variable, 'default') ?? '') : '';
  });
  return URL.parse(url, 'http://base.invalid/')?.pathname ?? '';
}

function trimBase(path: string): string {
  return path === '/' ? '' : path.replace(/\/+$/, '');
}

class ApiReader {
  readonly operations: ApiOperation[] = [];
  readonly refused: RefusedOperation[] = [];
  readonly #document: SchemaDocument;
  readonly #root: JsonObject;
  readonly #scope: Scope;
  readonly #swagger: boolean;
  readonly #selection: ApiSelection;
  readonly #names = new Map<string, Selectable>();

  constructor(document: SchemaDocument, root: JsonObject, scope: Scope, swagger: boolean, selection: ApiSelection) {
    this.#document = document;
    this.#root = root;
    this.#scope = scope;
    this.#swagger = swagger;
    this.#selection = selection;
  }

  readPaths(): void {
    for (const [path, value] of Object.entries(objectOf(this.#root, 'paths') ?? {})) {
      if (!path.startsWith('/')) continue;
      const item = follow(this.#document, value, this.#scope);
      if (item === undefined) {
        this.refused.push({ name: path, method: '', pathTemplate: path, reason: 'its path item leads nowhere' });
        continue;
      }
      for (const method of METHODS) {
        const operation = member(item.value, method);
        if (isObject(operation))
          this.#readOperation(path, method.toUpperCase(), { value: operation, scope: item.scope }, item);
      }
    }
  }

  #readOperation(path: string, method: string, operation: Located, item: Located): void {
    const operationId = textOf(operation.value, 'operationId');
    const tags = listOf(operation.value, 'tags').map(String);
    // A fragment or query in a path template is no part of the path: some documents tell operations apart by one.
    const pathTemplate = path;
    const given = toolName(operationId, method, path);
    const { rename } = this.#selection;
    const renamed = rename === undefined ? undefined : (own(rename, operationId) ?? own(rename, given));
    const selectable: Selectable = { name: renamed ?? given, operationId, method, pathTemplate, tags };
    if (!isSelected(this.#selection, selectable)) return;
    const reason = this.#build(selectable, operation, item);
    if (reason !== undefined) this.refused.push({ name: selectable.name, method, pathTemplate, reason });
  }

  /** Makes the operation a tool, or says why it cannot be one. */
  #build(selectable: Selectable, operation: Located, item: Located): string | undefined {
    const { name, pathTemplate } = selectable;
    if (/[?#]/.test(pathTemplate)) return 'its path holds a query or fragment';
    const elsewhere = this.#servedElsewhere(operation.value) ?? this.#servedElsewhere(item.value);
    if (elsewhere !== undefined) return `it is served by another server (\`${elsewhere}\`)`;
    const partial: string[] = [];
    const lists = [
      { list: listOf(item.value, 'parameters'), scope: item.scope },
      { list: listOf(operation.value, 'parameters'), scope: operation.scope },
    ];
    const { parameters, swagger } = readParameters(this.#document, lists, partial);
    const reading = this.#swagger
      ? readSwaggerBody(swagger, this.#consumes(operation.value))
      : readRequestBody(this.#document, member(operation.value, 'requestBody'), operation.scope);
    if ('unsupported' in reading) return reading.unsupported;
    // A body of a GET or HEAD has no meaning (RFC 9110 section 9.3.1); some documents declare an empty one.
    const body = selectable.method === 'GET' || selectable.method === 'HEAD' ? undefined : reading.body;
    let inPath: string[];
    try {
      inPath = templateParameters(selectable);
    } catch (cause) {
      if (cause instanceof RoutingError) return cause.message;
      throw cause;
    }
    const usable = parameters.filter((parameter) => parameter.place !== 'path' || inPath.includes(parameter.name));
    const missing = inPath.filter((one) => !usable.some(({ place, name: other }) => place === 'path' && other === one));
    if (missing.length > 0) return `its path parameter \`${missing[0]}\` is not declared`;
    const other = this.#names.get(name);
    if (other !== undefined) refuseClash(selectable, other);
    this.#names.set(name, selectable);
    this.operations.push(
      new LazyOperation(this.#document, selectable, operation, { parameters: usable, body, partial }, this.#swagger),
    );
    return undefined;
  }

  #consumes(operation: JsonObject): string[] {
    const list = Object.hasOwn(operation, 'consumes') ? operation : this.#root;
    return listOf(list, 'consumes').map(String);
  }

  /** The URL of a server of its own that an operation or path names, where it is on another host than the document's. */
  #servedElsewhere(value: JsonObject): string | undefined {
    const own = listOf(value, 'servers')[0];
    if (!isObject(own)) return undefined;
    const url = textOf(own, 'url') ?? '';
    const common = listOf(this.#root, 'servers')[0];
    return isObject(common) && textOf(common, 'url') === url ? undefined : url;
  }
}

function own(names: Readonly<Record<string, string>>, key: string | undefined): string | undefined {
  return key !== undefined && Object.hasOwn(names, key) ? names[key] : undefined;
}

interface Sources {
  readonly parameters: readonly ParameterSource[];
  readonly body: BodySource | undefined;
  readonly partial: readonly string[];
}

/** What an operation's parts become once they are asked for. */
interface Made {
  readonly parameters: readonly Parameter[];
  readonly body: OperationBody | undefined;
  readonly input: CompiledSchema;
}

class LazyOperation implements ApiOperation {
  readonly name: string;
  readonly method: string;
  readonly pathTemplate: string;
  readonly tags: readonly string[];
  readonly writes: boolean;
  readonly #document: SchemaDocument;
  readonly #operation: Located;
  readonly #sources: Sources;
  readonly #swagger: boolean;
  #made: Made | undefined;
  #result: { schema: CompiledSchema | undefined } | undefined;

  constructor(
    document: SchemaDocument,
    selectable: Selectable,
    operation: Located,
    sources: Sources,
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

  get input(): CompiledSchema {
    return this.#make().input;
  }

  get partial(): readonly string[] {
    return [...this.#sources.partial, ...this.input.partial];
  }

  get result(): CompiledSchema | undefined {
    this.#result ??= { schema: readResult(this.#document, this.#operation, this.#swagger) };
    return this.#result.schema;
  }

  #make(): Made {
    this.#made ??= makeOperation(this.#document, this.#sources);
    return this.#made;
  }
}

function makeOperation(document: SchemaDocument, { parameters, body }: Sources): Made {
  const properties: Record<string, JsonValue> = {};
  const required: string[] = [];
  const named = nameArguments(parameters);
  for (const [argument, { schema, scope, required: isRequired }] of named) {
    document.adopt(schema, scope);
    properties[argument] = schema;
    if (isRequired) required.push(argument);
  }
  const taken = new Set(Object.keys(properties));
  const placed = body === undefined ? undefined : placeBody(document, body, taken);
  const hasBody = placed !== undefined && !isEmptyObject(placed);
  const schema: Record<string, JsonValue> = { type: 'object', properties };
  if (hasBody) addBody(schema, required, placed);
  if (required.length > 0) schema['required'] = required;
  const base = body?.scope.base ?? parameters[0]?.scope.base;
  const input = compileSchema(schema, { document, direction: 'request', ...(base === undefined ? {} : { base }) });
  return {
    parameters: named.map(([argument, source]) => new LazyParameter(argument, source, input)),
    body: hasBody ? new LazyBody(placed) : undefined,
    input,
  };
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

/** A body with where its members stand among the arguments. */
interface PlacedBody {
  readonly source: BodySource;
  /** The argument that holds the whole body. */
  readonly argument: string | undefined;
  /** Members at the top: an object schema to merge in, or one to apply beside. */
  readonly flat: { readonly schema: JsonObject; readonly scope: Scope } | undefined;
  readonly names: readonly string[];
  readonly alone: CompiledSchema;
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

function addBody(schema: Record<string, JsonValue>, required: string[], placed: PlacedBody): void {
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
      ...objectOf(flat.schema, 'properties'),
    };
    for (const name of listOf(flat.schema, 'required')) if (typeof name === 'string') required.push(name);
    const rest = member(flat.schema, 'additionalProperties');
    if (rest !== undefined) schema['additionalProperties'] = rest;
  } else {
    schema['allOf'] = [source.schema];
  }
}

class LazyParameter implements Parameter {
  readonly name: string;
  readonly argument: string;
  readonly place: Parameter['place'];
  readonly style: Parameter['style'];
  readonly explode: boolean;
  readonly required: boolean;
  readonly #input: CompiledSchema;
  #kind: ValueKind | undefined;

  constructor(argument: string, source: ParameterSource, input: CompiledSchema) {
    this.name = source.name;
    this.argument = argument;
    this.place = source.place;
    this.style = source.style;
    this.explode = source.explode;
    this.required = source.required;
    this.#input = input;
  }

  get kind(): ValueKind {
    this.#kind ??= this.#input.kindOf(this.argument) ?? TEXT_KIND;
    return this.#kind;
  }
}

class LazyBody implements OperationBody {
  readonly format: OperationBody['format'];
  readonly contentType: string;
  readonly required: boolean;
  readonly argument: string | undefined;
  readonly #placed: PlacedBody;
  #fields: ReadonlyMap<string, FormField> | undefined;

  constructor(placed: PlacedBody) {
    this.format = placed.source.format;
    this.contentType = placed.source.contentType;
    this.required = placed.source.required;
    this.argument = placed.argument;
    this.#placed = placed;
  }

  get fields(): ReadonlyMap<string, FormField> {
    if (this.format === 'json') return NO_FIELDS;
    this.#fields ??= readFields(this.#placed.source, this.#placed.alone, this.#placed.names);
    return this.#fields;
  }
}

const NO_FIELDS: ReadonlyMap<string, FormField> = new Map();

/** The schema of the first successful answer that is JSON. */
function readResult(document: SchemaDocument, operation: Located, swagger: boolean): CompiledSchema | undefined {
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
    if (!isSchema(schema)) continue;
    document.adopt(schema, response.scope);
    return compileSchema(schema, { document, base: response.scope.base, direction: 'response' });
  }
  return undefined;
}
