import { Readable } from 'node:stream';

/** The largest streamed answer that is held whole for one that is answered whole (`/v1/call`, a tool's result), in bytes. */
export const MAX_WHOLE_BYTES: number = 64 << 20;

/**
 * The whole of an answer; `undefined` where it broke off or is too large.
 * @param maxBytes More than this of a streamed answer is read and not kept.
 */
export async function collectBody(body: Uint8Array | Readable, maxBytes: number): Promise<Uint8Array | undefined> {
  if (!(body instanceof Readable)) return body;
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      const bytes: Uint8Array = chunk;
      size += bytes.length;
      // The rest is still read, so that the call's outcome is known; it is not kept.
      if (size <= maxBytes) chunks.push(bytes);
    }
  } catch {
    // The outcome that goes with the answer says that it broke off.
    return undefined;
  }
  return size <= maxBytes ? Buffer.concat(chunks) : undefined;
}
