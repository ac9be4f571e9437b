/*
 * Section 2 of docs/formats.md a second time, written from that page alone: JSON.parse says whether it is RFC 8259 at all,
 * a walk over the tokens says what the profile refuses. Decimals are compared as fractions of integers.
 */

const TOKEN = /\s+|[{}[\],:]|"(?:[^"\\]|\\.)*"|[-+.0-9eE]+|true|false|null/y;

interface Level {
  readonly names: Set<string> | undefined;
}

/** A JSON text in; `ok`, or the code of its first fault out. */
export function oracleProfile(text: string): string {
  if (text.startsWith('\ufeff')) return 'bom';
  try {
    JSON.parse(text);
  } catch {
    return 'syntax';
  }
  const levels: Level[] = [];
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(text); match !== null; match = TOKEN.exec(text)) {
    const fault = tokenFault(match[0], text.slice(TOKEN.lastIndex).trimStart(), levels);
    if (fault !== undefined) return fault;
  }
  return 'ok';
}

function tokenFault(token: string, rest: string, levels: Level[]): string | undefined {
  const first = token.charAt(0);
  if (first === '{' || first === '[') {
    levels.push({ names: first === '{' ? new Set() : undefined });
    return levels.length > 64 ? 'depth' : undefined;
  }
  if (first === '}' || first === ']') {
    levels.pop();
    return undefined;
  }
  if (first === '"') return stringFault(JSON.parse(token), rest.startsWith(':') ? levels.at(-1)?.names : undefined);
  return first === '-' || (first >= '0' && first <= '9') ? numberFault(token) : undefined;
}

function stringFault(value: string, names: Set<string> | undefined): string | undefined {
  if (/\p{Surrogate}/u.test(value)) return 'lone_surrogate';
  if (names === undefined) return undefined;
  if (value === '__proto__') return 'proto_key';
  if (names.has(value)) return 'duplicate_key';
  names.add(value);
  return undefined;
}

function numberFault(text: string): string | undefined {
  const zero = /^-?[0.]+([eE]|$)/.test(text);
  if (zero) return text.startsWith('-') ? 'negative_zero' : undefined;
  if (/^-?[0-9]+$/.test(text)) return text.replace('-', '').length > 1300 ? 'number' : undefined;
  const value = Number(text);
  if (!Number.isFinite(value) || value === 0) return 'number';
  const [a, b] = [fraction(text), fraction(String(value))];
  return a.over * b.under === b.over * a.under ? undefined : 'number';
}

function fraction(text: string): { readonly over: bigint; readonly under: bigint } {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const [whole = '', part = ''] = mantissa.split('.');
  const power = Number(exponent) - part.length;
  const digits = BigInt(whole + part);
  return power < 0
    ? { over: digits, under: 10n ** BigInt(-power) }
    : { over: digits * 10n ** BigInt(power), under: 1n };
}
