import { createHash } from 'node:crypto';
import { readFile, realpath, stat } from 'node:fs/promises';
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseDocument } from 'yaml';
import { ApiError } from '../../policy/openapi/api.ts';
import type { ApiFiles } from '../../policy/openapi/read-api.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';

/** Limits of loading, in octets. */
export interface LoadLimits {
  /** Of all files of a document together. */
  readonly maxBytes: number;
}

/** A parsed document, and what its bytes come to. */
export interface LoadedApi extends ApiFiles {
  /**
   * `sha256:` and the hexadecimal digest of the file's bytes (as `sha256sum` has it); of a document of several files, that
   * of a list of their paths below the document's folder and their digests.
   */
  readonly digest: string;
  /** Digest of each file by its path; of what was fetched, none. */
  readonly sources: ReadonlyMap<string, string>;
}

const DEFAULT_LIMITS: LoadLimits = { maxBytes: 64 * 1024 * 1024 };
/** A YAML text of more than this takes longer to read than a start may; the same document as JSON does not. */
const MAX_YAML_BYTES = 16 * 1024 * 1024;
const MAX_FILES = 1_000;

/**
 * Reads an OpenAPI document from a file, YAML or JSON, with the files that its references name. Only files inside the
 * document's folder are read, links resolved; other references are left as they are, so that what needs them is partial.
 * Nothing is fetched. Throws `ApiError` where a file is too large, is no YAML or JSON, or cannot be read.
 */
export async function loadApiFiles(path: string, limits: LoadLimits = DEFAULT_LIMITS): Promise<LoadedApi> {
  const rootPath = await realPathOf(path);
  const folder = dirname(rootPath);
  const root = pathToFileURL(rootPath).href;
  const files = new Map<string, JsonValue>();
  const sources = new Map<string, string>();
  const queue = [rootPath];
  let left = limits.maxBytes;
  for (const file of queue) {
    const uri = pathToFileURL(file).href;
    if (files.has(uri)) continue;
    if (files.size >= MAX_FILES)
      throw new ApiError('api_invalid', `\`${path}\` is made of more than ${MAX_FILES} files`);
    const bytes = await readBytes(file, left);
    left -= bytes.length;
    sources.set(file, digestOf(bytes));
    const value = parseBytes(bytes, file);
    files.set(uri, value);
    if (!mayLeadOut(bytes)) continue;
    for (const reference of fileReferences(value)) {
      const target = await localFile(reference, uri, folder);
      if (target !== undefined) queue.push(target);
    }
  }
  return { root, files, sources, digest: digestOfAll(sources, folder) };
}

function digestOfAll(sources: ReadonlyMap<string, string>, folder: string): string {
  const [only = '', ...others] = sources.values();
  if (others.length === 0) return only;
  const lines = [...sources].map(([file, digest]) => `${relative(folder, file).replaceAll(sep, '/')} ${digest}`);
  return digestOf(Buffer.from(lines.sort().join('\n')));
}

/** Whether every file that a document was read from still has the same bytes. */
export async function isUnchanged({ sources }: LoadedApi): Promise<boolean> {
  for (const [file, digest] of sources) {
    const bytes = await readFile(file).catch(() => undefined);
    if (bytes === undefined || digestOf(bytes) !== digest) return false;
  }
  return true;
}

/** `sha256:` and the hexadecimal digest of bytes. */
export function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

async function realPathOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    throw new ApiError('api_invalid', `the document \`${path}\` cannot be read; does the file exist?`);
  }
}

async function readBytes(file: string, left: number): Promise<Uint8Array> {
  const { size } = await stat(file);
  if (size > left) throw new ApiError('api_invalid', `\`${file}\` is too large: the limit for a document is reached`);
  return readFile(file);
}

/** Parses the bytes of YAML or JSON; `name` says in messages what they are. */
export function parseBytes(bytes: Uint8Array, name: string): JsonValue {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ApiError('api_invalid', `\`${name}\` is not UTF-8`);
  }
  return parseText(text, name);
}

/** Parses YAML or JSON: JSON where the text starts as an object or list, which is many times faster. */
export function parseText(text: string, file: string): JsonValue {
  if (/^\s*[{[]/.test(text)) {
    try {
      return checkDepth(JSON.parse(text), file);
    } catch (error) {
      if (error instanceof ApiError) throw error;
      // YAML's flow style starts the same way.
    }
  }
  if (text.length > MAX_YAML_BYTES) {
    throw new ApiError(
      'api_invalid',
      `\`${file}\` is more YAML than is read (${MAX_YAML_BYTES} octets); give it as JSON`,
    );
  }
  const document = parseDocument(text, { uniqueKeys: false, strict: true, stringKeys: true, logLevel: 'silent' });
  const error = document.errors[0];
  if (error !== undefined) throw new ApiError('api_invalid', `\`${file}\`: ${error.message.split('\n')[0]}`);
  try {
    // Aliases are bounded, so that a small text cannot become a large value.
    return toJson(document.toJS({ maxAliasCount: 100 }), 0);
  } catch (cause) {
    throw new ApiError('api_invalid', `\`${file}\`: ${cause instanceof Error ? cause.message : 'cannot be read'}`);
  }
}

const MAX_DEPTH = 256;

/** No schema is nested so deep by anybody who means well, and everything that reads it would have to be ready for it. */
function checkDepth(root: JsonValue, file: string): JsonValue {
  if (!isWithin(root, MAX_DEPTH)) {
    throw new ApiError('api_invalid', `\`${file}\` is nested more than ${MAX_DEPTH} deep`);
  }
  return root;
}

/** Whether objects and lists nest at most `left` deep. Makes no list of members: a document has a million of them. */
function isWithin(value: JsonValue, left: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (left === 0) return false;
  if (Array.isArray(value)) return value.every((item: JsonValue) => isWithin(item, left - 1));
  const members = value as JsonObject;
  for (const key in members) if (!isWithin(members[key] ?? null, left - 1)) return false;
  return true;
}

/** Makes sure that what YAML gave is JSON: no dates, no other keys than texts, no cycles through aliases. */
function toJson(value: unknown, depth: number): JsonValue {
  if (depth > MAX_DEPTH) throw new RangeError('is nested too deep, or refers to itself by an alias');
  if (value === null || value === undefined) return null;
  if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'bigint') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (Array.isArray(value)) return value.map((item) => toJson(item, depth + 1));
  if (value instanceof Date) return value.toISOString();
  if (typeof value !== 'object') throw new TypeError('holds a value that JSON has no form for');
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toJson(item, depth + 1)]));
}

/**
 * Whether some `$ref` of a text does not begin with `#`, as it stands there; most documents are one file and need no second
 * walk. One that is written with escapes is not seen, and stays unresolved.
 */
function mayLeadOut(bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = text.indexOf('$ref'); at >= 0; at = text.indexOf('$ref', at + 4)) {
    let next = at + 4;
    while (BETWEEN.has(text[next] ?? 0)) next += 1;
    if (text[next] !== HASH) return true;
  }
  return false;
}

const HASH = 0x23;
/** What stands between `$ref` and its reference: quotes, a colon, white space. */
const BETWEEN: ReadonlySet<number> = new Set([...'"\': \t\r\n'].map((char) => char.charCodeAt(0)));

/** The file parts of every reference in a document. */
function fileReferences(root: JsonValue): Set<string> {
  const found = new Set<string>();
  const stack: JsonValue[] = [root];
  for (let value = stack.pop(); value !== undefined; value = stack.pop()) {
    if (typeof value !== 'object' || value === null) continue;
    for (const [key, child] of Object.entries(value) as [string, JsonValue][]) {
      if (key === '$ref' && typeof child === 'string') {
        const file = child.split('#', 1)[0] ?? '';
        if (file !== '') found.add(file);
      } else if (typeof child === 'object' && child !== null) stack.push(child);
    }
  }
  return found;
}

/** The path of a referenced file, where it is a file inside the folder. */
async function localFile(reference: string, base: string, folder: string): Promise<string | undefined> {
  const url = URL.parse(reference, base);
  if (url === null || url.protocol !== 'file:' || url.host !== '') return undefined;
  url.search = '';
  url.hash = '';
  try {
    const path = await realpath(resolve(fileURLToPath(url)));
    const inside = relative(folder, path);
    if (inside === '' || inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside)) return undefined;
    return (await stat(path)).isFile() ? path : undefined;
  } catch {
    return undefined; // no such file: what refers to it is partial
  }
}
