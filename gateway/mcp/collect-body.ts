import { Readable } from 'node:stream';

/** The largest streamed answer that becomes a tool result, in bytes. */
const MAX_BYTES: number = 16 << 20;

/** The whole of an answer; `undefined` where it broke off or is too large to be a tool's result. */
export async function collectBody(body: Uint8Array | Readable): Promise<Uint8Array | undefined> {
  if (!(body instanceof Readable)) return body;
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      const bytes: Uint8Array = chunk;
      size += bytes.length;
      // The rest is still read, so that the call's outcome is known; it is not kept.
      if (size <= MAX_BYTES) chunks.push(bytes);
    }
  } catch {
    // The outcome that goes with the answer says that it broke off.
    return undefined;
  }
  return size <= MAX_BYTES ? Buffer.concat(chunks) : undefined;
}
