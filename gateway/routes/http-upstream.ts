import type { BuiltRequest, RequestBody } from '../../policy/openapi/request.ts';
import type { SchemaFault } from '../../policy/schema/walk.ts';
import type { Tool } from '../../policy/tool.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { RuntimeRoute } from '../catalogue/runtime-route.ts';
import type { Config } from '../config/config.ts';
import type { Upstream, UpstreamAnswer, UpstreamCall } from '../exchange.ts';
import { createHttpUpstream, type HttpUpstream } from '../http/forward.ts';
import { buildOnce, carryFaults, type HttpOperations } from './http-operations.ts';

/** What stands behind a hand-listed route: tools become requests, and the key of a write goes where its backend takes it. */
class HttpRouteUpstream implements Upstream {
  readonly #upstream: HttpUpstream;
  readonly #operations: HttpOperations;
  readonly #basePath: string;
  readonly #wholeUpTo: number;

  constructor(url: string, operations: HttpOperations, headers: readonly string[], wholeUpTo: number) {
    const { origin, pathname } = new URL(url);
    this.#upstream = createHttpUpstream({ origin, headers });
    this.#operations = operations;
    this.#basePath = pathname.endsWith('/') ? pathname.slice(0, -1) : pathname;
    this.#wholeUpTo = wholeUpTo;
  }

  check(tool: Tool, args: JsonObject): readonly SchemaFault[] {
    return carryFaults(this.#operations, tool, args);
  }

  async send(call: UpstreamCall): Promise<UpstreamAnswer> {
    const made = buildOnce(this.#operations, call.tool, call.arguments);
    // The check refuses what cannot be carried; that it got here is a fault of the gateway, and nothing is sent.
    if ('faults' in made) return { kind: 'not_sent', code: 'not_carried', why: 'the arguments make no request' };
    const { request } = made;
    const keyed = withKey(call, request);
    const query = keyed.rawQuery === '' ? '' : `?${keyed.rawQuery}`;
    const body = bodyOf(keyed.body);
    return this.#upstream.forward({
      method: request.method,
      rawPath: `${this.#basePath}${request.rawPath}${query}`,
      headers: headersOf(call, request, body),
      timeoutMs: call.timeoutMs,
      wholeUpTo: call.whole || readsAnswer(call.tool) ? this.#wholeUpTo : 0,
      ...(call.tool.writes ? { totalTimeoutMs: call.timeoutMs } : {}),
      ...(body === undefined ? {} : { body: body.text }),
      ...(call.abort === undefined ? {} : { abort: call.abort }),
      ...(call.onSending === undefined ? {} : { onSending: call.onSending }),
    });
  }

  ready(): Promise<void> {
    return this.#upstream.ready();
  }

  close(): Promise<void> {
    return this.#upstream.close();
  }
}

/** Somebody reads the answer: it is kept for a repeat, or rules read it later. */
function readsAnswer(tool: Tool): boolean {
  return tool.writes || tool.result !== undefined;
}

/** The gateway alone writes the argument that carries a key. */
function withKey(call: UpstreamCall, request: BuiltRequest): Pick<BuiltRequest, 'rawQuery' | 'body'> {
  const { idempotency } = call.tool;
  if (call.upstreamKey === undefined || idempotency === undefined || 'header' in idempotency) return request;
  const { argument } = idempotency;
  if (request.body?.kind === 'json' && isRecord(request.body.value)) {
    return {
      rawQuery: request.rawQuery,
      body: { kind: 'json', value: { ...request.body.value, [argument]: call.upstreamKey } },
    };
  }
  const pair = `${encodeURIComponent(argument)}=${encodeURIComponent(call.upstreamKey)}`;
  return { ...request, rawQuery: request.rawQuery === '' ? pair : `${request.rawQuery}&${pair}` };
}

interface SentBody {
  readonly text: string;
  readonly contentType: string;
}

function bodyOf(body: RequestBody | undefined): SentBody | undefined {
  if (body === undefined) return undefined;
  if (body.kind === 'json') return { text: canonicalize(body.value), contentType: 'application/json' };
  if (body.kind === 'form') return { text: body.text, contentType: 'application/x-www-form-urlencoded' };
  throw new Error('a hand-listed call has no multipart body');
}

function headersOf(call: UpstreamCall, request: BuiltRequest, body: SentBody | undefined): readonly string[] {
  const headers = [...call.passedHeaders];
  for (const [name, value] of request.headers) headers.push(name, value);
  if (body !== undefined) headers.push('content-type', body.contentType);
  if (call.traceparent !== undefined) headers.push('traceparent', call.traceparent);
  const { idempotency } = call.tool;
  if (call.upstreamKey !== undefined && idempotency !== undefined && 'header' in idempotency) {
    headers.push(idempotency.header, quoted(idempotency.header, call.upstreamKey));
  }
  return headers;
}

/** `Idempotency-Key` is a structured-field string (draft-ietf-httpapi-idempotency-key-header-07); other headers are the backend's own. */
function quoted(header: string, key: string): string {
  return header.toLowerCase() === 'idempotency-key' ? `"${key}"` : key;
}

function isRecord(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Opens the upstream of a route. */
export function openHttpUpstream(route: RuntimeRoute, operations: HttpOperations, config: Config): Upstream {
  const headers = route.upstreamHeaders.flatMap(({ name, value }) => [name, value.reveal()]);
  return new HttpRouteUpstream(route.upstream ?? '', operations, headers, config.store.maxAnswerBytes);
}
