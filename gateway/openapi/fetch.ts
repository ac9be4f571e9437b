import { request } from 'undici';
import { ApiError } from '../../policy/openapi/api.ts';
import { digestOf, type LoadedApi, parseBytes } from './load.ts';

/** Limits of fetching a document. */
export interface FetchLimits {
  readonly maxBytes: number;
  /** For all of it. */
  readonly timeoutMs: number;
}

const DEFAULT_LIMITS: FetchLimits = { maxBytes: 64 * 1024 * 1024, timeoutMs: 15_000 };

/**
 * Reads the document that the upstream itself serves. References to other files stay as they are: nothing else is fetched,
 * and no redirect is followed. `headers` are name and value in turn. Throws `ApiError` where the answer is none or too
 * large, and where its digest is not `pinned`: a server that could change its own description would say itself what is
 * checked. Without a pin the error tells the digest, for an operator to look at the document and write it down.
 */
export async function fetchApiFiles(
  url: string,
  pinned: string | undefined,
  headers: readonly string[],
  limits: FetchLimits = DEFAULT_LIMITS,
): Promise<LoadedApi> {
  const bytes = await fetchBytes(url, headers, limits);
  const digest = digestOf(bytes);
  if (pinned === undefined) {
    throw new ApiError(
      'api_unpinned',
      `the document at \`${url}\` is not pinned; look at it, then write \`openapi: {document: "${url}", digest: "${digest}"}\``,
    );
  }
  if (pinned !== digest) throw changedDocument(url, pinned, digest);
  return { root: url, files: new Map([[url, parseBytes(bytes, url)]]), sources: new Map(), digest };
}

/** What is told of a document that is another than the one that was pinned. */
export function changedDocument(name: string, pinned: string, digest: string): ApiError {
  return new ApiError(
    'api_changed',
    `the document \`${name}\` has changed: it has the digest \`${digest}\`, and \`${pinned}\` is pinned; look at what changed, then pin the new one`,
  );
}

async function fetchBytes(url: string, headers: readonly string[], limits: FetchLimits): Promise<Uint8Array> {
  const signal = AbortSignal.timeout(limits.timeoutMs);
  const accept = 'application/json, application/yaml, application/openapi+json, application/openapi+yaml, */*;q=0.1';
  try {
    const { statusCode, body } = await request(url, { signal, headers: ['accept', accept, ...headers] });
    if (statusCode !== 200) {
      body.destroy();
      throw new ApiError('api_invalid', `the document at \`${url}\` was answered with ${statusCode}, not with 200`);
    }
    const pieces: Uint8Array[] = [];
    let size = 0;
    for await (const piece of body as AsyncIterable<Uint8Array>) {
      size += piece.length;
      if (size > limits.maxBytes) {
        throw new ApiError('api_invalid', `the document at \`${url}\` is larger than ${limits.maxBytes} bytes`);
      }
      pieces.push(piece);
    }
    return Buffer.concat(pieces, size);
  } catch (cause) {
    if (cause instanceof ApiError) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ApiError('api_invalid', `the document at \`${url}\` cannot be read: ${why}; is the upstream up?`);
  }
}
