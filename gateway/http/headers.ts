import type { IncomingMessage } from 'node:http';
import type { Problem } from '../exchange.ts';
import { fault } from './problems.ts';

/**
 * Headers that belong to one connection (RFC 9110 section 7.6.1, with the old names that still travel). They are never
 * passed on, in either direction.
 */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/** Headers of a request that carry members of a call or ask something of the gateway. */
const CALL_HEADERS: ReadonlySet<string> = new Set([
  'toolgate-call',
  'toolgate-session',
  'toolgate-agent',
  'toolgate-run',
  'toolgate-undoes',
  'toolgate-confirmation',
  'toolgate-receipt',
  'toolgate-origins',
  'toolgate-context',
  'toolgate-want',
]);

/** Headers that would turn the checked method into another one behind the gateway. */
const METHOD_OVERRIDES: ReadonlySet<string> = new Set([
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-http-method-overide',
]);

/** Headers by which backends take another path, host or client than those that the request shows. */
const REROUTING: ReadonlySet<string> = new Set([
  'x-original-url',
  'x-original-uri',
  'x-original-path',
  'x-original-host',
  'x-rewrite-url',
  'x-envoy-original-path',
  'x-host',
  'x-http-host-override',
  'x-real-ip',
]);

/** A header's name (lower case) as backends have it that take an underscore for a hyphen (RFC 3875 section 4.1.18). */
export function foldHeaderName(name: string): string {
  return name.includes('_') ? name.replaceAll('_', '-') : name;
}

/** Whether a request header (lower case) says where it came from, or that it is another request than it seems. */
export function isOfTheWay(name: string): boolean {
  return name === 'forwarded' || name.startsWith('x-forwarded-') || REROUTING.has(name) || METHOD_OVERRIDES.has(name);
}

/** Headers that must stand once, each with its bit: two readers could otherwise take two different ones. */
const SINGLE: ReadonlyMap<string, number> = new Map(
  [
    'host',
    'content-type',
    'content-length',
    'content-encoding',
    'transfer-encoding',
    'authorization',
    'idempotency-key',
    'origin',
    'expect',
    'traceparent',
    'last-event-id',
  ].map((name, bit) => [name, 1 << bit]),
);

/**
 * Checks the header section as it came, before anything reads it: node:http joins or drops duplicates in its `headers`, so
 * only the raw list tells. Answers the first fault.
 * @param raw Names and values in turn.
 * @param maxCount Header fields taken.
 */
export function checkRawHeaders(raw: readonly string[], maxCount: number): Problem | undefined {
  if (raw.length > maxCount * 2) {
    return fault('headers_too_large', `the request has more than ${maxCount} header fields; send fewer`);
  }
  let seen = 0;
  let own: string[] | undefined;
  for (let at = 0; at < raw.length; at += 2) {
    const name = (raw[at] ?? '').toLowerCase();
    const bit = SINGLE.get(name);
    if (bit !== undefined) {
      if ((seen & bit) !== 0) return twice(name);
      seen |= bit;
    } else if (name.startsWith('toolgate-') || name.startsWith('mcp-')) {
      if (name.startsWith('toolgate-') && !CALL_HEADERS.has(name)) {
        return fault(
          'unknown_member',
          `the header \`${shown(name)}\` is none that the gateway knows; correct its name`,
        );
      }
      if (own === undefined) own = [name];
      else if (own.includes(name)) return twice(name);
      else own.push(name);
    } else if (METHOD_OVERRIDES.has(foldHeaderName(name))) {
      return fault(
        'method_override',
        `the header \`${name}\` is refused; send the request with the method that is meant`,
      );
    }
  }
  return undefined;
}

/** The value of a header that `checkRawHeaders` has found at most once. */
export function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' ? value : undefined;
}

/** Every value of a header (lower-case name) as it came, in order: node:http keeps one of some and joins those of others. */
export function headerValues(request: IncomingMessage, name: string): readonly string[] {
  const values: string[] = [];
  if (request.headers[name] === undefined) return values;
  const raw = request.rawHeaders;
  for (let at = 0; at + 1 < raw.length; at += 2) {
    if ((raw[at] ?? '').toLowerCase() === name) values.push(raw[at + 1] ?? '');
  }
  return values;
}

/**
 * The lower-case names that a `Connection` header lists (RFC 9110 section 7.6.1): they belong to the connection too.
 */
export function connectionOptions(value: string | undefined): ReadonlySet<string> | undefined {
  if (value === undefined || value === 'keep-alive' || value === 'close') return undefined;
  const names = new Set<string>();
  for (const part of value.split(',')) names.add(part.trim().toLowerCase());
  return names;
}

/** Whether a header speaks for the gateway, so that no one else's may pass under that name. */
export function isGatewayHeader(name: string): boolean {
  return name.startsWith('toolgate-') || name === 'idempotency-replayed';
}

/**
 * The request headers that `names` (lower case) lets through, name and value in turn and in order; without what belongs to
 * the connection, the caller's credential among them only where it is named.
 */
export function pickHeaders(request: IncomingMessage, names: ReadonlySet<string>): string[] {
  const picked: string[] = [];
  if (names.size === 0) return picked;
  const raw = request.rawHeaders;
  const listed = connectionOptions(request.headers.connection);
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] ?? '').toLowerCase();
    if (!names.has(name) || HOP_BY_HOP.has(name) || isGatewayHeader(name) || listed?.has(name) === true) continue;
    picked.push(name, raw[at + 1] ?? '');
  }
  return picked;
}

function twice(name: string): Problem {
  return fault('duplicate_header', `the header \`${shown(name)}\` stands twice; send it once`);
}

function shown(name: string): string {
  return name.length > 64 ? `${name.slice(0, 64)}…` : name;
}
