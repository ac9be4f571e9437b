import type { RouteConfig } from './config.ts';
import type { ConfigPath } from './problem.ts';
import type { RawRoute } from './raw.ts';
import type { Reading } from './reading.ts';

/** Headers that belong to a connection or a message's framing (RFC 9110 section 7.6.1, RFC 9112 section 6): the gateway's alone. */
const FRAMING: ReadonlySet<string> = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
]);

/** Headers that say who asked; the gateway writes them itself. */
const WRITTEN: ReadonlySet<string> = new Set(['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto']);

type RouteHeaders = Pick<RouteConfig, 'upstreamHeaders' | 'headers' | 'passAuthorization'>;

/** What a route sends upstream of its own and what it lets through, lower case. Faults: headers that neither may be. */
export function readHeaders(route: RawRoute, path: ConfigPath, reading: Reading): RouteHeaders {
  const seen = new Set<string>();
  const upstreamHeaders = Object.entries(route.upstream_headers ?? {}).map(([given, text]) => {
    const at = [...path, 'upstream_headers', given];
    const name = given.toLowerCase();
    if (isReserved(name))
      reading.log.error('reserved_header', at, `\`${given}\` is written by the gateway itself`, 'key');
    if (seen.has(name))
      reading.log.error(
        'duplicate_name',
        at,
        `\`${given}\` stands twice; names of headers do not differ by case`,
        'key',
      );
    seen.add(name);
    const value = reading.secret(text, at);
    // Anything but visible ASCII, spaces and tabs inside could end the header or be read in two ways (RFC 9110 section 5.5).
    if (!/^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$/.test(value.reveal()) && value.reveal() !== '') {
      reading.log.error(
        'wrong_value',
        at,
        `the value of \`${given}\` holds a line break or a character that a header cannot carry`,
      );
    }
    return { name, value };
  });
  const headers = (route.headers ?? []).map((given, index) => {
    const at = [...path, 'headers', index];
    const name = given.toLowerCase();
    if (name === 'authorization') {
      reading.log.error(
        'reserved_header',
        at,
        'the caller’s `Authorization` goes upstream with `pass_authorization: true` alone',
      );
    } else if (isReserved(name) || name === 'idempotency-key') {
      reading.log.error('reserved_header', at, `\`${given}\` is never let through`);
    } else if (seen.has(name)) {
      reading.log.error(
        'duplicate_name',
        at,
        `\`${given}\` is let through and written by \`upstream_headers\`; it can only be one`,
      );
    }
    return name;
  });
  const passAuthorization = route.pass_authorization ?? false;
  if (passAuthorization && seen.has('authorization')) {
    reading.log.error(
      'duplicate_name',
      [...path, 'pass_authorization'],
      '`Authorization` is passed on and written by `upstream_headers`; it can only be one',
    );
  }
  return { upstreamHeaders, headers, passAuthorization };
}

function isReserved(name: string): boolean {
  return FRAMING.has(name) || WRITTEN.has(name) || name.startsWith('toolgate-');
}
