import { isAscii } from 'node:buffer';
import { parseJson } from '../../receipts/json.ts';
import { JsonFault } from '../../receipts/json-fault.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import type { Problem } from '../exchange.ts';
import type { EdgeExchange } from './edge-exchange.ts';
import { fault } from './problems.ts';

/** A body that was read whole, or why it was not. */
export type Body = { readonly bytes: Buffer } | { readonly problem: Problem };

const EMPTY: Body = { bytes: Buffer.alloc(0) };

/**
 * Reads the body of a request whole.
 * @param maxBytes More than this is `too_large`, and the rest is left unread.
 */
export function readBody(exchange: EdgeExchange, maxBytes: number): Promise<Body> | Body {
  const { request, response } = exchange;
  const length = request.headers['content-length'];
  if (length !== undefined && Number(length) > maxBytes) return tooLarge(maxBytes);
  if (!exchange.hasBody) return EMPTY;
  if (exchange.awaitsContinue) response.writeContinue();
  return new Promise((resolve) => {
    let first: Buffer | undefined;
    let rest: Buffer[] | undefined;
    let size = 0;
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > maxBytes) settle(tooLarge(maxBytes));
      else if (first === undefined) first = chunk;
      else if (rest === undefined) rest = [first, chunk];
      else rest.push(chunk);
    };
    const onEnd = (): void => {
      if (rest !== undefined) settle({ bytes: Buffer.concat(rest, size) });
      else settle(first === undefined ? EMPTY : { bytes: first });
    };
    const onClose = (): void => {
      settle({ problem: fault('bad_request', 'the body ended early; send all of it') });
    };
    // What comes after the first settling changes nothing, so only a body that is left unread needs its listener gone.
    const settle = (body: Body): void => {
      if ('problem' in body) request.off('data', onData);
      resolve(body);
    };
    request.on('data', onData).on('end', onEnd).on('close', onClose);
  });
}

/**
 * Checks that a body is of a media type, in UTF-8 and not compressed, and nothing that merely looks like it. Answers the
 * fault.
 * @param media Media types that are taken, lower case and without parameters; the first is named to whoever sends another.
 */
export function checkBodyType(exchange: EdgeExchange, media: readonly string[]): Problem | undefined {
  const encoding = exchange.header('content-encoding');
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return fault('unsupported_media_type', 'a compressed body is not taken; send it without Content-Encoding');
  }
  const type = exchange.header('content-type');
  const wanted = media[0] ?? '';
  if (type === wanted) return undefined;
  if (type === undefined) {
    return fault('unsupported_media_type', `the body has no Content-Type; send \`${wanted}\``);
  }
  if (isUtf8Of(type, media)) return undefined;
  return fault('unsupported_media_type', `the body must be \`${wanted}\` in UTF-8; send it so`);
}

/**
 * Whether a Content-Type (RFC 9110 section 8.3.1) is one of `media`, with no parameter but a charset of UTF-8, for multipart
 * also its boundary. A tab is refused: some readers take what stands before it, others all of it.
 */
function isUtf8Of(type: string, media: readonly string[]): boolean {
  if (type.includes('\t')) return false;
  const [name = '', ...parameters] = type.toLowerCase().split(';');
  const found = media.find((one) => one === name.trim());
  if (found === undefined) return false;
  const given = parameters.map((parameter) => parameter.trim());
  const others = given.filter((parameter) => parameter !== 'charset=utf-8' && parameter !== 'charset="utf-8"');
  const boundaries = found.startsWith('multipart/') ? 1 : 0;
  const isBoundary = (parameter: string): boolean => parameter.startsWith('boundary=');
  return given.length - others.length <= 1 && others.length === boundaries && others.every(isBoundary);
}

function tooLarge(maxBytes: number): Body {
  return { problem: fault('too_large', `the body is larger than the limit of ${maxBytes} bytes; send a smaller one`) };
}

const JSON_TYPES: readonly string[] = ['application/json'];

/**
 * Reads a body of JSON whole, under the strict profile.
 * @param maxBytes More than this is `too_large`.
 * @param media Media types of JSON that are taken.
 */
export function readJsonBody(
  exchange: EdgeExchange,
  maxBytes: number,
  media: readonly string[] = JSON_TYPES,
): Promise<{ readonly value: JsonValue } | { readonly problem: Problem }> {
  const why = checkBodyType(exchange, media);
  if (why !== undefined) return Promise.resolve({ problem: why });
  const body = readBody(exchange, maxBytes);
  return body instanceof Promise ? body.then(readJson) : Promise.resolve(readJson(body));
}

function readJson(body: Body): { readonly value: JsonValue } | { readonly problem: Problem } {
  if ('problem' in body) return body;
  try {
    // Nearly every body is plain ASCII, of which each byte is its character: several times as fast as decoding UTF-8.
    return { value: parseJson(isAscii(body.bytes) ? body.bytes.toString('latin1') : body.bytes) };
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    return { problem: fault('bad_json', `the body is refused: ${error.message}`, { pointer: error.pointer }) };
  }
}
