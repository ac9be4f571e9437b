import type { Problem } from '../exchange.ts';
import { fault } from './problems.ts';

/** A request target in origin form (RFC 9112 section 3.2.1), as it came: nothing decoded, nothing tidied. */
export interface Target {
  readonly path: string;
  /** Without the question mark; empty where there is none. */
  readonly query: string;
}

/**
 * Takes a request target apart. A path that two readers could read differently is refused rather than normalised: encoded
 * slashes, backslashes, dots, percent signs and controls, dot and empty segments, parameters behind `;`, fragments, and
 * bytes that are not UTF-8 once decoded. `takesMatrix` says of which paths `;` may be a part: whoever serves them reads it as
 * an argument (OpenAPI's `matrix` style). What is left matches a route letter by letter or not at all.
 */
export function parseTarget(
  target: string,
  maxLength: number,
  takesMatrix?: (path: string) => boolean,
): Target | { readonly problem: Problem } {
  if (target.length > maxLength) {
    return {
      problem: fault('target_too_long', `the request target is longer than ${maxLength} characters; shorten it`),
    };
  }
  if (target.charCodeAt(0) !== SLASH) {
    return refuse('it must be a path that begins with a slash, not a whole URL');
  }
  const mark = target.indexOf('?');
  const path = mark === -1 ? target : target.slice(0, mark);
  const query = mark === -1 ? '' : target.slice(mark + 1);
  const why = pathFault(path, takesMatrix) ?? (query === '' ? undefined : queryFault(query));
  return why === undefined ? { path, query } : refuse(why);
}

/** Some readers cut `..;x` down to `..`. */
function isDots(text: string): boolean {
  return text === '.' || text === '..';
}

const SLASH = 0x2f;
const PERCENT = 0x25;
const DOT = 0x2e;

/** Decoded bytes that an encoded path may not hold beside controls: `% . / ; \`. */
const NEVER_ENCODED: ReadonlySet<number> = new Set([PERCENT, DOT, SLASH, 0x3b, 0x5c]);

function pathFault(path: string, takesMatrix: ((path: string) => boolean) | undefined): string | undefined {
  let segment = 1;
  let high = false;
  for (let at = 1; at <= path.length; at += 1) {
    const code = at === path.length ? SLASH : path.charCodeAt(at);
    if (code === SLASH) {
      const length = at - segment;
      if (length === 0 && at !== path.length) return 'it holds an empty segment (`//`)';
      if (length === 1 && path.charCodeAt(segment) === DOT) return 'it holds a dot segment';
      if (length === 2 && path.charCodeAt(segment) === DOT && path.charCodeAt(segment + 1) === DOT) {
        return 'it holds a dot segment';
      }
      segment = at + 1;
    } else if (code === PERCENT) {
      const byte = hexByte(path, at);
      if (byte === -1) return 'it holds a percent sign without two hexadecimal digits';
      if (byte < 0x20 || byte === 0x7f) return 'it holds an encoded control character';
      if (NEVER_ENCODED.has(byte)) return 'it holds an encoded slash, backslash, dot, semicolon or percent sign';
      if (byte >= 0x80) high = true;
      at += 2;
    } else if (code === 0x5c || code === 0x23) {
      return 'it holds a backslash or a number sign';
    } else if (code === 0x3b) {
      if (takesMatrix?.(path) !== true) return 'it holds a semicolon';
      if (isDots(path.slice(segment, at))) return 'it holds a dot segment';
    } else if (code <= 0x20 || code >= 0x7f) {
      return 'it holds a character that must be percent-encoded';
    }
  }
  return high && !decodes(path) ? 'its percent-encoded bytes are not UTF-8' : undefined;
}

function queryFault(query: string): string | undefined {
  let high = false;
  for (let at = 0; at < query.length; at += 1) {
    const code = query.charCodeAt(at);
    if (code === PERCENT) {
      const byte = hexByte(query, at);
      if (byte === -1) return 'its query holds a percent sign without two hexadecimal digits';
      if (byte === 0) return 'its query holds an encoded NUL';
      if (byte >= 0x80) high = true;
      at += 2;
    } else if (code === 0x23 || code === 0x5c) {
      return 'its query holds a number sign or a backslash';
    } else if (code <= 0x20 || code >= 0x7f) {
      return 'its query holds a character that must be percent-encoded';
    }
  }
  if (high && !decodes(query)) return 'the percent-encoded bytes of its query are not UTF-8';
  return /%|method/i.test(query) && overridesMethod(query) ? 'its query overrides the method (`_method`)' : undefined;
}

function overridesMethod(query: string): boolean {
  return query.split(/[&;]/).some((pair) => {
    const end = pair.indexOf('=');
    return decodeURIComponent(end === -1 ? pair : pair.slice(0, end)).toLowerCase() === '_method';
  });
}

/** The byte that two hexadecimal digits behind `at` give; -1 where they are none. */
function hexByte(text: string, at: number): number {
  const high = hexDigit(text.charCodeAt(at + 1));
  const low = hexDigit(text.charCodeAt(at + 2));
  return high === -1 || low === -1 ? -1 : high * 16 + low;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

function decodes(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function refuse(why: string): { readonly problem: Problem } {
  return { problem: fault('bad_target', `the request target is refused: ${why}; send the plain path of the route`) };
}
