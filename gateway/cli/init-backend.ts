import { constants } from 'node:fs';
import { copyFile, writeFile } from 'node:fs/promises';
import { basename, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { request } from 'undici';
import { ApiError } from '../../policy/openapi/api.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import { loadApiFiles } from '../openapi/load.ts';
import { CliFault } from './command.ts';

/** What the person names. */
export interface InitSource {
  readonly openapi?: string;
  readonly upstream?: string;
  /** Its address, or the program to run with its arguments. */
  readonly mcp?: readonly string[];
}

/** What stands behind the route of a starter. */
export type Backend =
  | { readonly kind: 'openapi'; readonly document: string; readonly upstream: string; readonly found?: string }
  | { readonly kind: 'mcp'; readonly url: string }
  | { readonly kind: 'mcp'; readonly command: readonly string[] }
  | { readonly kind: 'plain'; readonly upstream: string };

/** Where services keep their document, most usual first. */
const DOCUMENT_PATHS = ['/openapi.json', '/openapi.yaml', '/v3/api-docs', '/swagger.json'];
const MAX_DOCUMENT_BYTES = 16 << 20;
const LOOK_MS = 3_000;

/** Finds out what a backend is, reading its document where it has one. Throws `CliFault` where too little was said. */
export async function findBackend({ openapi, upstream, mcp }: InitSource, folder: string): Promise<Backend> {
  if (mcp !== undefined) {
    if (openapi !== undefined || upstream !== undefined) throw new CliFault(2, 'name one backend');
    const [first = ''] = mcp;
    return /^https?:\/\//.test(first) ? { kind: 'mcp', url: checkAddress(first) } : { kind: 'mcp', command: mcp };
  }
  if (openapi !== undefined) {
    const address = upstream ?? (await serverOf(openapi));
    if (address === undefined) {
      throw new CliFault(2, `\`${openapi}\` does not say where its service is; name it with \`--upstream URL\``);
    }
    return { kind: 'openapi', document: await keepBeside(openapi, folder), upstream: checkAddress(address) };
  }
  if (upstream === undefined)
    throw new CliFault(2, 'name a backend: `--openapi FILE`, `--upstream URL`, or both; or `--mcp SERVER`');
  const address = checkAddress(upstream);
  for (const path of DOCUMENT_PATHS) {
    const text = await fetchDocument(`${address}${path}`);
    if (text === undefined) continue;
    const name = path.endsWith('.yaml') ? 'openapi.yaml' : 'openapi.json';
    await writeFile(join(folder, name), text, { flag: 'wx' }).catch((error: unknown) => {
      throw new CliFault(1, `\`${join(folder, name)}\` cannot be written: ${String(error)}`);
    });
    return { kind: 'openapi', document: `./${name}`, upstream: address, found: `${address}${path}` };
  }
  return { kind: 'plain', upstream: address };
}

function checkAddress(text: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) {
    throw new CliFault(2, `\`${text}\` is no address; give one such as \`http://127.0.0.1:9100\``);
  }
  return text.replace(/\/+$/, '');
}

/** The first absolute address under `servers`. */
async function serverOf(document: string): Promise<string | undefined> {
  try {
    const { root, files } = await loadApiFiles(resolve(document));
    const servers = member(files.get(root) ?? null, 'servers');
    for (const server of Array.isArray(servers) ? servers : []) {
      const url = member(server, 'url');
      // A trailing path is the document's own, which the route adds by itself.
      if (typeof url === 'string' && /^https?:\/\/[^{}]+$/.test(url)) return new URL(url).origin;
    }
    return undefined;
  } catch (error) {
    if (error instanceof ApiError) throw new CliFault(1, error.message);
    throw error;
  }
}

function member(value: JsonValue, name: string): JsonValue | undefined {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return undefined;
  return Object.entries(value).find(([key]) => key === name)?.[1];
}

/** The text at an address, where it is an OpenAPI document. */
async function fetchDocument(url: string): Promise<string | undefined> {
  try {
    const { statusCode, body } = await request(url, {
      headersTimeout: LOOK_MS,
      bodyTimeout: LOOK_MS,
      signal: AbortSignal.timeout(LOOK_MS),
      headers: { accept: 'application/json, application/yaml' },
    });
    let text = '';
    for await (const chunk of body) {
      text += String(chunk);
      if (text.length > MAX_DOCUMENT_BYTES) return undefined;
    }
    const head = text.slice(0, 4_000);
    return statusCode === 200 && /"?(?:openapi|swagger)"?\s*:/.test(head) ? text : undefined;
  } catch {
    // Nothing there that could be read: the person is told that no document was found.
    return undefined;
  }
}

/** A document outside the folder is copied beside the configuration, so that the two travel together. */
async function keepBeside(document: string, folder: string): Promise<string> {
  const from = resolve(document);
  const name = relative(folder, from);
  if (!name.startsWith('..')) return `./${name}`;
  const to = join(folder, basename(from));
  try {
    await copyFile(from, to, constants.COPYFILE_EXCL);
  } catch (error) {
    throw new CliFault(1, `\`${pathToFileURL(from).pathname}\` cannot be copied to \`${to}\`: ${String(error)}`);
  }
  return `./${basename(to)}`;
}
