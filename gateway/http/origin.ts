import type { Problem } from '../exchange.ts';
import { fault } from './problems.ts';

export interface OriginOptions {
  /** The server listens on this machine alone, where any web page could otherwise reach it by a name of its own. */
  readonly loopback: boolean;
  /** Origins of pages that may call from a browser, beside those of the gateway itself: `https://app.example`. */
  readonly origins?: readonly string[];
}

/** `Host` and `Origin` header values in; why the request is refused out. */
export type OriginCheck = (host: string, origin: string | undefined) => Problem | undefined;

/**
 * Makes the check against DNS rebinding and calls from foreign pages: on a loopback listener `Host` must name this machine,
 * and everywhere an `Origin` must be the gateway's own or one that is listed. `null` is no one's.
 */
export function createOriginCheck(options: OriginOptions): OriginCheck {
  const listed = new Set((options.origins ?? []).map((origin) => origin.toLowerCase()));
  let lastGood: string | undefined;
  return (host, origin) => {
    if (origin === undefined && host === lastGood) return undefined;
    const name = hostName(host);
    if (name === undefined || (options.loopback && !isLoopbackName(name))) {
      return fault('foreign_host', 'the Host header does not name this gateway; call it by its own address');
    }
    lastGood = host;
    if (origin === undefined) return undefined;
    const lower = origin.toLowerCase();
    if (listed.has(lower) || isOwn(lower, host.toLowerCase(), options.loopback)) return undefined;
    return fault('foreign_origin', 'pages of other sites may not call this gateway');
  };
}

/** An origin of the gateway itself; on loopback of any page that this machine serves. */
function isOwn(origin: string, host: string, loopback: boolean): boolean {
  const rest = origin.startsWith('http://') ? origin.slice(7) : origin.startsWith('https://') ? origin.slice(8) : '';
  if (rest === '' || rest.includes('/')) return false;
  if (rest === host) return true;
  const name = loopback ? hostName(rest) : undefined;
  return name !== undefined && isLoopbackName(name);
}

/** The host of `host[:port]` (RFC 9110 section 7.2), lower case; nothing where it is not one. */
function hostName(host: string): string | undefined {
  const lower = host.toLowerCase();
  const end = lower.startsWith('[') ? lower.indexOf(']') + 1 : lower.indexOf(':');
  if (lower.startsWith('[') && end === 0) return undefined;
  const name = end <= 0 ? lower : lower.slice(0, end);
  const port = end <= 0 ? '' : lower.slice(end);
  if (port !== '' && !isPort(port)) return undefined;
  return name === '' || !isPlain(name) ? undefined : name;
}

function isPort(text: string): boolean {
  if (text.length < 1 || text.length > 6 || text.charCodeAt(0) !== 0x3a) return false;
  for (let at = 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x30 || code > 0x39) return false;
  }
  return true;
}

/** Letters, digits, `-`, `.`, `_`, and inside brackets colons and a zone's percent sign. */
function isPlain(name: string): boolean {
  const literal = name.startsWith('[');
  for (let at = literal ? 1 : 0; at < name.length - (literal ? 1 : 0); at += 1) {
    const code = name.charCodeAt(at);
    const letter = (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39);
    if (letter || code === 0x2d || code === 0x2e || code === 0x5f) continue;
    if (!literal || (code !== 0x3a && code !== 0x25)) return false;
  }
  return true;
}

function isLoopbackName(name: string): boolean {
  if (name === 'localhost' || name === '[::1]') return true;
  const parts = name.split('.');
  if (parts.length !== 4 || parts[0] !== '127') return false;
  return parts.every((part) => part.length > 0 && part.length <= 3 && isPort(`:${part}`) && Number(part) <= 255);
}
