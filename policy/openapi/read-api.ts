import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { RoutingError, templateParameters } from '../route-template.ts';
import { Router } from '../routing.ts';
import { member } from '../schema/dialect.ts';
import { SchemaDocument, type Scope } from '../schema/document.ts';
import { type Api, ApiError, type ApiOperation, type ApiSelection, type RefusedOperation } from './api.ts';
import { readRequestBody, readSwaggerBody } from './body.ts';
import { LazyOperation } from './lazy-operation.ts';
import { readParameters } from './parameters.ts';
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
    unmet: [...reader.unmet],
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
  readonly unmet: Set<string>;
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
    const { include = [], exclude = [], rename = {} } = selection;
    this.unmet = new Set([...include, ...exclude, ...Object.keys(rename)]);
  }

  readPaths(): void {
    for (const [path, value] of Object.entries(objectOf(this.#root, 'paths') ?? {})) {
      if (!path.startsWith('/')) continue;
      const item = follow(this.#document, value, this.#scope);
      if (item === undefined) {
        this.refused.push({ name: path, method: '', pathTemplate: path, reason: 'its path item leads nowhere' });
        continue;
      }
      const others = objectOf(item.value, 'additionalOperations') ?? {};
      for (const method of [...METHODS, ...Object.keys(others)]) {
        const operation = member(item.value, method) ?? member(others, method);
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
    if (renamed !== undefined) for (const name of [operationId ?? given, given]) this.unmet.delete(name);
    const selectable: Selectable = { name: renamed ?? given, operationId, method, pathTemplate, tags };
    if (!isSelected(this.#selection, selectable, this.unmet)) return;
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
    const { parameters, swagger } = readParameters(this.#document, lists, partial, this.#selection.withoutHeaders);
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
      new LazyOperation(
        this.#document,
        selectable,
        operation,
        { parameters: usable, body, partial, left: [] },
        this.#swagger,
      ),
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
