import type { Operation } from '../../policy/openapi/operation.ts';
import type { RequestBody } from '../../policy/openapi/request.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
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
export function readRequestBody(
  exchange: EdgeExchange,
  { body }: Operation,
  tool: string,
  maxBytes: number,
): Promise<ReadBody> | ReadBody | undefined {
  if (!exchange.hasBody) return undefined;
  if (body === undefined) return { problem: fault('body_not_expected', `\`${tool}\` takes no body; leave it out`) };
  switch (body.format) {
    case 'form':
      return readFormBody(exchange, maxBytes).then((read) =>
        'problem' in read ? read : { kind: 'form', text: read.text },
      );
    case 'multipart':
      return readMultipartBody(exchange, maxBytes).then((read) =>
        'problem' in read ? read : { kind: 'multipart', parts: read.parts },
      );
    case 'json':
      return readJsonBody(exchange, maxBytes, jsonTypes(body.contentType)).then(asJson);
  }
}

/** A body as its operation takes it, or why it was not. */
export type ReadBody = RequestBody | { readonly problem: Problem };

function asJson(read: { readonly value: JsonValue } | { readonly problem: Problem }): ReadBody {
  return 'problem' in read ? read : { kind: 'json', value: read.value };
}

const PLAIN_JSON: readonly string[] = ['application/json'];

function jsonTypes(declared: string): readonly string[] {
  const media = (declared.split(';', 1)[0] ?? '').trim().toLowerCase();
  return media === 'application/json' || media === '' ? PLAIN_JSON : [media, 'application/json'];
}
