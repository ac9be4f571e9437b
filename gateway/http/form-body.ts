import busboy from 'busboy';
import type { BodyPart } from '../../policy/openapi/request.ts';
import type { Problem } from '../exchange.ts';
import { checkBodyType, readBody } from './body.ts';
import type { EdgeExchange } from './edge-exchange.ts';
import { fault } from './problems.ts';

const FORM: readonly string[] = ['application/x-www-form-urlencoded'];
const MULTIPART: readonly string[] = ['multipart/form-data'];

/** More parts than any honest form has. */
const MAX_PARTS = 1_000;
const MAX_NAME_BYTES = 1_024;

/**
 * Reads a form-urlencoded body as text, still encoded.
 * @param maxBytes More than this is `too_large`.
 */
export async function readFormBody(
  exchange: EdgeExchange,
  maxBytes: number,
): Promise<{ readonly text: string } | { readonly problem: Problem }> {
  const read = await readText(exchange, maxBytes, FORM);
  return 'problem' in read ? read : { text: read.text };
}

/**
 * Reads the parts of a multipart body (RFC 7578). A file is refused: it is no argument.
 * @param maxBytes More than this is `too_large`.
 */
export async function readMultipartBody(
  exchange: EdgeExchange,
  maxBytes: number,
): Promise<{ readonly parts: readonly BodyPart[] } | { readonly problem: Problem }> {
  const read = await readText(exchange, maxBytes, MULTIPART);
  if ('problem' in read) return read;
  try {
    return { parts: await parseParts(read.bytes, exchange.header('content-type') ?? '', maxBytes) };
  } catch (error) {
    if (error instanceof FileFault) return { problem: fault('unsupported_media_type', error.message) };
    const why = error instanceof Error ? error.message : 'it is malformed';
    return { problem: fault('bad_request', `the multipart body cannot be read: ${why}; send it as RFC 7578 says`) };
  }
}

async function readText(
  exchange: EdgeExchange,
  maxBytes: number,
  media: readonly string[],
): Promise<{ readonly bytes: Buffer; readonly text: string } | { readonly problem: Problem }> {
  const why = checkBodyType(exchange, media);
  if (why !== undefined) return { problem: why };
  const body = await readBody(exchange, maxBytes);
  if ('problem' in body) return body;
  try {
    return { bytes: body.bytes, text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body.bytes) };
  } catch {
    return { problem: fault('bad_request', 'the body is not UTF-8; send it so') };
  }
}

class FileFault extends Error {
  readonly code = 'file_part';
}

function parseParts(bytes: Buffer, type: string, maxBytes: number): Promise<readonly BodyPart[]> {
  return new Promise((resolve, reject) => {
    const limits = { fieldNameSize: MAX_NAME_BYTES, fieldSize: maxBytes, parts: MAX_PARTS + 1, headerPairs: 16 };
    const reader = busboy({ headers: { 'content-type': type }, limits, defParamCharset: 'utf8' });
    const parts: BodyPart[] = [];
    reader.on('field', (name: string | undefined, text, { nameTruncated, valueTruncated, mimeType }) => {
      // The types of the package know no part without a name.
      if (name === undefined) reject(new Error('a part has no name'));
      else if (nameTruncated || valueTruncated) reject(new Error('a part is too large'));
      else if (parts.length >= MAX_PARTS) reject(new Error(`it has more than ${MAX_PARTS} parts`));
      else parts.push({ name, contentType: mimeType, text });
    });
    reader.on('file', (name, stream) => {
      stream.resume();
      reject(new FileFault(`the part \`${name.slice(0, 64)}\` is a file, which is no argument; leave it out`));
    });
    reader.on('error', reject);
    reader.on('close', () => resolve(parts));
    reader.end(bytes);
  });
}
