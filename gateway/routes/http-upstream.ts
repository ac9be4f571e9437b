import type { Operation } from '../../policy/openapi/operation.ts';
import type { BuiltRequest, RequestBody } from '../../policy/openapi/request.ts';
import type { SchemaFault } from '../../policy/schema/walk.ts';
import type { Tool } from '../../policy/tool.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import { upstreamUrl } from '../catalogue/check-passes.ts';
import type { RuntimeRoute } from '../catalogue/runtime-route.ts';
import type { Config, UpstreamTls } from '../config/config.ts';
import type { Upstream, UpstreamAnswer, UpstreamCall, UpstreamTarget } from '../exchange.ts';
import { createHttpUpstream, type HttpUpstream, type HttpUpstreamOptions } from '../http/forward.ts';
import { renderMultipart } from '../http/multipart.ts';
import { type BuiltOrFaults, buildKeyed, buildOnce, carryFaults, type HttpOperations } from './http-operations.ts';

/** What stands behind a route over HTTP: tools become requests, and the key of a write goes where its backend takes it. */
class HttpRouteUpstream implements Upstream {
  readonly #upstream: HttpUpstream;
  readonly #operations: HttpOperations;
  readonly #basePath: string;
  readonly #wholeUpTo: number;
  readonly #place: Pick<UpstreamTarget, 'host' | 'port'>;

  constructor(
    url: string,
    operations: HttpOperations,
    options: Pick<HttpUpstreamOptions, 'headers' | 'tls'>,
    wholeUpTo: number,
  ) {
    const { origin, pathname, hostname, port, protocol } = new URL(url);
    this.#place = { host: hostname, port: Number(port === '' ? DEFAULT_PORTS[protocol] : port) };
    this.#upstream = createHttpUpstream({ origin, ...options });
    this.#operations = operations;
    this.#basePath = pathname.endsWith('/') ? pathname.slice(0, -1) : pathname;
    this.#wholeUpTo = wholeUpTo;
  }

  check(tool: Tool, args: JsonObject): readonly SchemaFault[] {
    return carryFaults(this.#operations, tool, args);
  }

  send(call: UpstreamCall): Promise<UpstreamAnswer> {
    const made = this.#build(call);
    // The check refuses what cannot be carried; that it got here is a fault of the gateway, and nothing is sent.
    if ('faults' in made) return NOT_CARRIED;
    const { request } = made;
    const query = request.rawQuery === '' ? '' : `?${request.rawQuery}`;
    const { operation } = this.#operations.byTool.get(call.tool.id) ?? {};
    const body = bodyOf(request.body, operation, call);
    return this.#upstream.forward({
      method: request.method,
      rawPath: `${this.#basePath}${request.rawPath}${query}`,
      headers: headersOf(call, operation, request, body),
      timeoutMs: call.timeoutMs,
      wholeUpTo: call.whole || readsAnswer(call.tool) ? this.#wholeUpTo : 0,
      ...(call.tool.writes ? { totalTimeoutMs: call.timeoutMs } : {}),
      ...(body === undefined ? {} : { body: body.text }),
      ...(call.abort === undefined ? {} : { abort: call.abort }),
      ...(call.onSending === undefined ? {} : { onSending: call.onSending }),
    });
  }

  target({ id }: Tool): UpstreamTarget {
    const known = this.#operations.byTool.get(id);
    // The path of the upstream itself may hold what only the backend is to know.
    const { method = '_OTHER', pathTemplate } = known ?? {};
    return {
      protocol: 'http',
      method,
      ...(pathTemplate === undefined ? {} : { template: pathTemplate }),
      ...this.#place,
    };
  }

  /** The gateway alone writes the argument that carries a key. */
  #build(call: UpstreamCall): BuiltOrFaults {
    const { tool, arguments: args, upstreamKey } = call;
    const { idempotency } = tool;
    if (upstreamKey === undefined || idempotency === undefined || 'header' in idempotency) {
      return buildOnce(this.#operations, tool, args);
    }
    return buildKeyed(this.#operations, tool, { ...args, [idempotency.argument]: upstreamKey });
  }

  ready(): Promise<void> {
    return this.#upstream.ready();
  }

  close(): Promise<void> {
    return this.#upstream.close();
  }
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

const NOT_CARRIED: Promise<UpstreamAnswer> = Promise.resolve({
  kind: 'not_sent',
  code: 'not_carried',
  why: 'the arguments make no request',
});

/** Somebody reads the answer: it is kept for a repeat, or rules read it later. */
function readsAnswer(tool: Tool): boolean {
  return tool.writes || tool.result !== undefined;
}

interface SentBody {
  readonly text: string;
  readonly contentType: string;
}

function bodyOf(
  body: RequestBody | undefined,
  operation: Operation | undefined,
  call: UpstreamCall,
): SentBody | undefined {
  if (body === undefined) return undefined;
  if (body.kind === 'multipart') return renderMultipart(body.parts);
  const contentType = operation?.body?.contentType ?? 'application/json';
  if (body.kind !== 'json') return { text: body.text, contentType };
  // The arguments themselves are in canonical form already.
  return { text: body.value === call.arguments ? call.canonical : canonicalize(body.value), contentType };
}

function headersOf(
  call: UpstreamCall,
  operation: Operation | undefined,
  request: BuiltRequest,
  body: SentBody | undefined,
): readonly string[] {
  const headers = withoutArguments(call, operation);
  for (const [name, value] of request.headers) headers.push(name, value);
  if (body !== undefined) headers.push('content-type', body.contentType);
  const traceparent = call.ownTraceparent ?? call.traceparent;
  if (traceparent !== undefined) headers.push('traceparent', traceparent);
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

/** A header that is an argument comes from the checked arguments alone, also where the route lets it through. */
function withoutArguments(call: UpstreamCall, operation: Operation | undefined): string[] {
  const { passedHeaders: passed, ownTraceparent } = call;
  const taken = operation === undefined ? NO_NAMES : headersTaken(operation);
  if (taken.size === 0 && ownTraceparent === undefined) return [...passed];
  const kept: string[] = [];
  for (let at = 0; at + 1 < passed.length; at += 2) {
    const name = (passed[at] ?? '').toLowerCase();
    const isReplaced = name === 'traceparent' && ownTraceparent !== undefined;
    if (!taken.has(name) && !isReplaced) kept.push(passed[at] ?? '', passed[at + 1] ?? '');
  }
  return kept;
}

const NO_NAMES: ReadonlySet<string> = new Set();
const TAKEN = new WeakMap<Operation, ReadonlySet<string>>();

/** The headers that an operation's parameters are, put together once. */
function headersTaken(operation: Operation): ReadonlySet<string> {
  const known = TAKEN.get(operation);
  if (known !== undefined) return known;
  const taken = new Set<string>();
  for (const { place, name } of operation.parameters) {
    if (place === 'header') taken.add(name.toLowerCase());
    else if (place === 'cookie') taken.add('cookie');
  }
  TAKEN.set(operation, taken);
  return taken;
}

/** Opens the upstream of a route. */
export function openHttpUpstream(route: RuntimeRoute, operations: HttpOperations, config: Config): Upstream {
  const headers = route.upstreamHeaders.flatMap(({ name, value }) => [name, value.reveal()]);
  const options = { headers, ...(route.upstreamTls === undefined ? {} : { tls: tlsOf(route.upstreamTls) }) };
  return new HttpRouteUpstream(upstreamUrl(route), operations, options, config.store.maxAnswerBytes);
}

/** How a connection to the upstream proves who is who. */
export function tlsOf({ ca, cert, key, serverName }: UpstreamTls): NonNullable<HttpUpstreamOptions['tls']> {
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined || key === undefined ? {} : { cert, key: key.reveal() }),
    ...(serverName === undefined ? {} : { servername: serverName }),
  };
}
