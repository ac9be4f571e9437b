import { isArray, isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { type Dialect, dialectOf, ignoresBesideRef, isSchema, member, SUBSCHEMA_KEYWORDS } from './dialect.ts';

/** Where a schema stands: the URI that its references are relative to, and the language it is written in. */
export interface Scope {
  readonly base: string;
  readonly dialect: Dialect;
}

/** A schema that a reference leads to. */
export interface ResolvedSchema {
  readonly schema: JsonValue;
  readonly scope: Scope;
}

/** What a `SchemaDocument` is made of. */
export interface SchemaDocumentOptions {
  /** Language of everything that names no other by `$schema`. */
  readonly dialect: Dialect;
  /** The files by absolute URI without fragment. References lead to these and nowhere else: nothing is ever fetched. */
  readonly files: ReadonlyMap<string, JsonValue>;
  /**
   * Whether files are schemas whose `$id` and `$anchor` name targets. False for OpenAPI documents, where schemas stand
   * scattered and references are pointers into files.
   */
  readonly identifiers: boolean;
}

/** Names that documents and anchors get by `$id` are kept under this base where they are relative. */
export const DEFAULT_BASE = 'schema:///root';

/**
 * A set of files with the references between them. It holds the parsed files as they are and resolves one reference at
 * a time; nothing is dereferenced into a tree, so cycles cost nothing.
 */
export class SchemaDocument {
  readonly dialect: Dialect;
  readonly #files: ReadonlyMap<string, JsonValue>;
  readonly #identifiers: boolean;
  readonly #scopes = new Map<object, Scope>();
  readonly #named = new Map<string, ResolvedSchema>();
  readonly #dynamicAnchors = new Map<string, number>();
  #indexed = false;

  constructor(options: SchemaDocumentOptions) {
    this.dialect = options.dialect;
    this.#files = options.files;
    this.#identifiers = options.identifiers;
  }

  /** The scope of a schema object, or `parent` where it names none of its own. */
  scopeOf(schema: JsonObject, parent: Scope): Scope {
    this.#index();
    return this.#scopes.get(schema) ?? parent;
  }

  /** The scope of the file under a URI. */
  scopeOfFile(uri: string): Scope {
    return { base: uri, dialect: this.dialect };
  }

  /** Says where a schema stands that is used outside its file, so that its references are followed from there. */
  adopt(schema: JsonValue, scope: Scope): void {
    if (isObject(schema)) this.#scopes.set(schema, scope);
  }

  /** How many resources give a dynamic anchor of this name: with one, a dynamic reference is an ordinary one. */
  dynamicAnchorCount(name: string): number {
    this.#index();
    return this.#dynamicAnchors.get(name) ?? 0;
  }

  /** Follows a reference from a scope. Undefined where it leads nowhere. */
  resolve(reference: string, from: Scope): ResolvedSchema | undefined {
    this.#index();
    const absolute = resolveUri(reference, from.base);
    if (absolute === undefined) return undefined;
    const hash = absolute.indexOf('#');
    const uri = hash < 0 ? absolute : absolute.slice(0, hash);
    const fragment = hash < 0 ? '' : absolute.slice(hash + 1);
    if (fragment !== '' && !fragment.startsWith('/')) return this.#named.get(`${uri}#${fragment}`);
    const root = this.#named.get(uri) ?? this.#file(uri);
    if (root === undefined) return undefined;
    return fragment === '' ? root : this.#point(root, fragment);
  }

  #file(uri: string): ResolvedSchema | undefined {
    const schema = this.#files.get(uri);
    return schema === undefined ? undefined : { schema, scope: this.scopeOfFile(uri) };
  }

  #point(root: ResolvedSchema, fragment: string): ResolvedSchema | undefined {
    let { schema, scope } = root;
    for (const raw of fragment.slice(1).split('/')) {
      const token = unescapeToken(raw);
      if (token === undefined) return undefined;
      let next: JsonValue | undefined;
      if (isObject(schema)) next = member(schema, token);
      else if (isArray(schema) && /^(?:0|[1-9]\d{0,9})$/.test(token)) next = schema[Number(token)];
      if (next === undefined) return undefined;
      schema = next;
      if (isObject(schema)) scope = this.#scopes.get(schema) ?? scope;
    }
    return { schema, scope };
  }

  #index(): void {
    if (this.#indexed) return;
    this.#indexed = true;
    if (!this.#identifiers) return;
    for (const [uri, file] of this.#files) this.#indexSchema(file, this.scopeOfFile(uri), true);
  }

  #indexSchema(schema: JsonValue, parent: Scope, root: boolean): void {
    if (!isObject(schema)) return;
    const scope = this.#enter(schema, parent, root);
    this.#scopes.set(schema, scope);
    for (const [keyword, arrangement] of SUBSCHEMA_KEYWORDS) {
      const value = member(schema, keyword);
      if (value === undefined) continue;
      if (arrangement === 'map' && isObject(value)) {
        for (const child of Object.values(value)) if (isSchema(child)) this.#indexSchema(child, scope, false);
      } else if (isArray(value)) {
        for (const child of value) this.#indexSchema(child, scope, false);
      } else if (arrangement !== 'map') {
        this.#indexSchema(value, scope, false);
      }
    }
  }

  #enter(schema: JsonObject, parent: Scope, root: boolean): Scope {
    let scope = parent;
    const id = member(schema, parent.dialect === 'draft-04' ? 'id' : '$id');
    const metaSchema = member(schema, '$schema');
    const ownDialect = typeof metaSchema === 'string' ? dialectOf(metaSchema) : undefined;
    if (ownDialect !== undefined && (root || typeof id === 'string')) scope = { ...scope, dialect: ownDialect };
    if (ignoresBesideRef(scope.dialect) && typeof member(schema, '$ref') === 'string') return scope;
    if (typeof id === 'string') {
      const absolute = resolveUri(id, scope.base);
      const hash = absolute?.indexOf('#') ?? -1;
      if (absolute !== undefined && hash >= 0 && hash < absolute.length - 1) this.#name(absolute, schema, scope);
      else if (absolute !== undefined) {
        scope = { ...scope, base: absolute.replace(/#$/, '') };
        this.#name(scope.base, schema, scope);
      }
    }
    for (const keyword of ['$anchor', '$dynamicAnchor']) {
      const anchor = member(schema, keyword);
      if (typeof anchor !== 'string') continue;
      this.#name(`${scope.base}#${anchor}`, schema, scope);
      if (keyword === '$dynamicAnchor') {
        this.#dynamicAnchors.set(anchor, (this.#dynamicAnchors.get(anchor) ?? 0) + 1);
      }
    }
    if (member(schema, '$recursiveAnchor') === true) {
      this.#dynamicAnchors.set('', (this.#dynamicAnchors.get('') ?? 0) + 1);
    }
    return scope;
  }

  #name(uri: string, schema: JsonObject, scope: Scope): void {
    if (!this.#named.has(uri)) this.#named.set(uri, { schema, scope });
  }
}

function resolveUri(reference: string, base: string): string | undefined {
  if (reference.startsWith('#')) return base + reference;
  return URL.parse(reference, base)?.href;
}

function unescapeToken(raw: string): string | undefined {
  try {
    // RFC 6901 section 6: a fragment is percent-decoded first; section 4: `~1` before `~0`.
    return decodeURIComponent(raw).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return undefined;
  }
}
