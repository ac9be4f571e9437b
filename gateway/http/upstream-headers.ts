import { isIPv6 } from 'node:net';
import type { EdgeExchange } from './edge-exchange.ts';
import { connectionOptions, HOP_BY_HOP, isGatewayHeader } from './headers.ts';

/** Request headers that the forwarder writes itself, or that would make it wait or frame a request otherwise. */
const WRITTEN_BY_US: ReadonlySet<string> = new Set(['host', 'content-length', 'expect']);

/** Whether a request header may go upstream at all, whoever names it. */
export function mayGoUpstream(name: string): boolean {
  return !HOP_BY_HOP.has(name) && !WRITTEN_BY_US.has(name) && !isGatewayHeader(name);
}

/**
 * The headers of one request to the upstream: those that the call brings and those that the operator always sends
 * (which win over the call's own of the same name).
 */
export function requestHeaders(
  given: readonly string[],
  fixed: readonly string[],
  fixedNames: ReadonlySet<string>,
): string[] {
  const headers: string[] = [];
  let accepts = fixedNames.has('accept');
  for (let at = 0; at + 1 < given.length; at += 2) {
    const name = (given[at] ?? '').toLowerCase();
    if (fixedNames.has(name) || !mayGoUpstream(name)) continue;
    if (name === 'accept') accepts = true;
    headers.push(name, given[at + 1] ?? '');
  }
  if (!accepts) headers.push('accept', '*/*');
  for (const part of fixed) headers.push(part);
  return headers;
}

/** The head of an upstream's answer, as far as the gateway reads it. */
export interface AnswerHead {
  /** End-to-end headers, name and value in turn, lower-case names. */
  readonly headers: string[];
  /** Bytes that Content-Length announces; -1 where it announces nothing. */
  readonly length: number;
  /** Media type without parameters, lower case; empty where there is none. */
  readonly mediaType: string;
}

/**
 * Reads the header section of an answer. What belongs to the connection goes, also what `Connection` lists; so does what
 * only the gateway may say.
 * @param raw Names and values in turn, as bytes.
 */
export function answerHead(raw: readonly Buffer[]): AnswerHead {
  const headers: string[] = [];
  let length = -1;
  let mediaType = '';
  let listed: ReadonlySet<string> | undefined;
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = latin1(raw[at]).toLowerCase();
    if (name === 'connection') {
      listed = connectionOptions(latin1(raw[at + 1]).toLowerCase()) ?? listed;
      continue;
    }
    if (HOP_BY_HOP.has(name) || isGatewayHeader(name)) continue;
    const value = latin1(raw[at + 1]);
    if (name === 'content-length') length = Number(value);
    else if (name === 'content-type') mediaType = mediaTypeOf(value);
    headers.push(name, value);
  }
  if (listed === undefined) return { headers, length, mediaType };
  const kept: string[] = [];
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? '';
    // Framing cannot be listed away: the length stays whatever `Connection` says.
    if (listed.has(name) && name !== 'content-length') continue;
    kept.push(name, headers[at + 1] ?? '');
  }
  return { headers: kept, length, mediaType };
}

/** Media type of a Content-Type without its parameters, lower case. */
function mediaTypeOf(value: string): string {
  const end = value.indexOf(';');
  return (end === -1 ? value : value.slice(0, end)).trim().toLowerCase();
}

/** What is told of the one who sent a request. */
export type ForwardedRequest = Pick<EdgeExchange, 'request' | 'header' | 'remoteAddress' | 'secure'>;

/**
 * `X-Forwarded-For`, `-Proto`, `-Host` and `Forwarded` (RFC 7239) for a request, made anew: what a stranger sent under
 * these names says nothing. Only what a trusted proxy sent is kept, and our peer is appended to it.
 */
export function forwardedHeaders(
  exchange: ForwardedRequest,
  isTrustedProxy?: (address: string) => boolean,
): readonly string[] {
  const { socket } = exchange.request;
  const host = exchange.header('host') ?? '';
  const last = OF_CONNECTION.get(socket);
  if (last !== undefined && last.host === host) return last.headers;
  const peer = exchange.remoteAddress;
  const proto = exchange.secure ? 'https' : 'http';
  const hop = `for=${node(peer)};host=${quoted(host)};proto=${proto}`;
  if (isTrustedProxy?.(peer) !== true) {
    const headers = forwardedBy(peer, proto, host, hop);
    OF_CONNECTION.set(socket, { host, headers });
    return headers;
  }
  const earlier = (name: string): string | undefined => {
    const value = exchange.request.headers[name];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const before = earlier('x-forwarded-for');
  const forwarded = earlier('forwarded');
  return forwardedBy(
    before === undefined ? peer : `${before}, ${peer}`,
    earlier('x-forwarded-proto') ?? proto,
    earlier('x-forwarded-host') ?? host,
    forwarded === undefined ? hop : `${forwarded}, ${hop}`,
  );
}

/** What the last request of a connection was given, where its peer is no trusted proxy: the next nearly always gets the same. */
const OF_CONNECTION = new WeakMap<object, { readonly host: string; readonly headers: readonly string[] }>();

function forwardedBy(peer: string, proto: string, host: string, forwarded: string): readonly string[] {
  return ['x-forwarded-for', peer, 'x-forwarded-proto', proto, 'x-forwarded-host', host, 'forwarded', forwarded];
}

/** A node identifier of RFC 7239 section 6: an IPv6 address stands in brackets and quotes. */
function node(address: string): string {
  return isIPv6(address) ? `"[${address}]"` : address === '' ? 'unknown' : address;
}

function quoted(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

function latin1(bytes: Buffer | undefined): string {
  return bytes === undefined ? '' : bytes.toString('latin1');
}
