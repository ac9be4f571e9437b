import type { Operation } from '../../policy/openapi/operation.ts';
import type { RequestBody } from '../../policy/openapi/request.ts';
import type { Problem } from '../exchange.ts';
import { readJsonBody } from '../http/body.ts';
import type { EdgeExchange } from '../http/edge-exchange.ts';
import { readFormBody, readMultipartBody } from '../http/form-body.ts';
import { fault } from '../http/problems.ts';

/**
 * Reads the body of a request in the one format that its operation takes: JSON (as `application/json` or as the type that
 * the document names), form-urlencoded or multipart. Undefined where there is none.
 * @param tool The tool's name, for messages.
 * @param maxBytes More than this is `too_large`.
 */
export async function readRequestBody(
  exchange: EdgeExchange,
  { body }: Operation,
  tool: string,
  maxBytes: number,
): Promise<RequestBody | { readonly problem: Problem } | undefined> {
  if (!exchange.hasBody) return undefined;
  if (body === undefined) return { problem: fault('body_not_expected', `\`${tool}\` takes no body; leave it out`) };
  if (body.format === 'form') {
    const read = await readFormBody(exchange, maxBytes);
    return 'problem' in read ? read : { kind: 'form', text: read.text };
  }
  if (body.format === 'multipart') {
    const read = await readMultipartBody(exchange, maxBytes);
    return 'problem' in read ? read : { kind: 'multipart', parts: read.parts };
  }
  const read = await readJsonBody(exchange, maxBytes, jsonTypes(body.contentType));
  return 'problem' in read ? read : { kind: 'json', value: read.value };
}

const PLAIN_JSON: readonly string[] = ['application/json'];

function jsonTypes(declared: string): readonly string[] {
  const media = (declared.split(';', 1)[0] ?? '').trim().toLowerCase();
  return media === 'application/json' || media === '' ? PLAIN_JSON : [media, 'application/json'];
}
