import { decodePercent } from './target.ts';

/** What is routed: a method (upper case), a template such as `/orders/{order_id}`, and who it belongs to. */
export interface Routable {
  readonly name: string;
  readonly method: string;
  readonly pathTemplate: string;
}

/** Thrown at load for templates that cannot be routed; the message names the operations. */
export class RoutingError extends Error {
  readonly code: 'template_invalid' | 'template_clash';
  constructor(code: 'template_invalid' | 'template_clash', message: string) {
    super(message);
    this.code = code;
  }
}

/** Part of a segment: a literal text as it stands in a raw path, or a parameter. */
type Part = { readonly literal: string } | { readonly parameter: string };

export interface Segment {
  readonly parts: readonly Part[];
  /** The raw text where there is no parameter. */
  readonly literal: string | undefined;
  /** Same for segments that match the same texts. */
  readonly key: string;
}

/** The names of a template's parameters, in order. Throws `RoutingError` for a broken template. */
export function templateParameters(operation: Routable): string[] {
  return parseTemplate(operation).flatMap(({ parts }) =>
    parts.flatMap((part) => ('parameter' in part ? [part.parameter] : [])),
  );
}

/** Fills a template with raw texts. The parameters must all be given; literals are encoded as in a path. */
export function fillTemplate(operation: Routable, raw: ReadonlyMap<string, string>): string {
  let path = '';
  for (const { parts } of parsedTemplate(operation)) {
    path += '/';
    for (const part of parts) path += 'parameter' in part ? (raw.get(part.parameter) ?? '') : part.literal;
  }
  return path;
}

const PARSED = new WeakMap<Routable, readonly Segment[]>();

/** The segments of a template, cut once for each operation. */
function parsedTemplate(operation: Routable): readonly Segment[] {
  const known = PARSED.get(operation);
  if (known !== undefined) return known;
  const segments = parseTemplate(operation);
  PARSED.set(operation, segments);
  return segments;
}

/** Cuts a template into segments. Throws `RoutingError` for a broken one. */
export function parseTemplate({ name, pathTemplate }: Routable): Segment[] {
  const invalid = (why: string): RoutingError =>
    new RoutingError('template_invalid', `the path \`${pathTemplate}\` of \`${name}\` ${why}`);
  if (!pathTemplate.startsWith('/')) throw invalid('must start with `/`');
  const seen = new Set<string>();
  const texts = pathTemplate.slice(1).split('/');
  return texts.map((text, i) => {
    if (text === '' && i < texts.length - 1) throw invalid('has an empty segment');
    const parts: Part[] = [];
    for (let at = 0; at < text.length; ) {
      const open = text.indexOf('{', at);
      const literal = text.slice(at, open < 0 ? text.length : open);
      if (literal.includes('}')) throw invalid('has a `}` without `{`');
      if (literal !== '') parts.push({ literal: encodeLiteral(literal) });
      if (open < 0) break;
      const close = text.indexOf('}', open);
      const parameter = close < 0 ? '' : text.slice(open + 1, close);
      if (parameter === '' || parameter.includes('{')) throw invalid('has a `{` without a name and `}`');
      if (seen.has(parameter)) throw invalid(`names \`${parameter}\` twice`);
      const before = parts.at(-1);
      if (before !== undefined && 'parameter' in before) throw invalid('has two parameters with nothing between');
      seen.add(parameter);
      parts.push({ parameter });
      at = close + 1;
    }
    const first = parts[0];
    const literal = first === undefined ? '' : parts.length === 1 && 'literal' in first ? first.literal : undefined;
    if (literal === '.' || literal === '..') throw invalid('has a dot segment');
    return { parts, literal, key: parts.map((part) => ('literal' in part ? part.literal : '{}')).join('') };
  });
}

/** A literal as clients send it: `pchar`s stay, the rest is encoded. What is encoded already is left. */
function encodeLiteral(literal: string): string {
  const decoded = decodePercent(literal) ?? literal;
  return encodeURI(decoded).replace(/[?#[\]]/g, (char) => encodeURIComponent(char));
}

/** Whether raw segments match a whole template. */
export function matchesTemplate(template: readonly Segment[], segments: readonly string[]): boolean {
  return (
    template.length === segments.length &&
    template.every((segment, i) => {
      const text = segments[i] ?? '';
      if (segment.literal !== undefined) return segment.literal === text;
      return matchMixed(segment, text, []);
    })
  );
}

/** Matches a segment of literals and parameters; each parameter takes the shortest text that is not empty. */
export function matchMixed(segment: Segment, text: string, values: string[]): boolean {
  let at = 0;
  let open = false;
  for (const [i, part] of segment.parts.entries()) {
    if ('parameter' in part) {
      open = true;
      continue;
    }
    if (!open) {
      if (!text.startsWith(part.literal)) return false;
      at = part.literal.length;
      continue;
    }
    const last = i === segment.parts.length - 1;
    const found = last ? text.length - part.literal.length : text.indexOf(part.literal, at + 1);
    if (found <= at || !text.startsWith(part.literal, found)) return false;
    values.push(text.slice(at, found));
    at = found + part.literal.length;
    open = false;
  }
  if (!open) return at === text.length;
  if (at >= text.length) return false;
  values.push(text.slice(at));
  return true;
}

/** How much of a segment is literal: the more, the more concrete. */
export function literalLength(segment: Segment): number {
  return segment.parts.reduce((sum, part) => sum + ('literal' in part ? part.literal.length : 0), 0);
}

/** Whether some text could match both: their leading and trailing literals must agree. */
export function mayOverlap(a: Segment, b: Segment): boolean {
  const [startA, endA] = edges(a);
  const [startB, endB] = edges(b);
  return (startA.startsWith(startB) || startB.startsWith(startA)) && (endA.endsWith(endB) || endB.endsWith(endA));
}

function edges({ parts }: Segment): [string, string] {
  const [first, last] = [parts[0], parts.at(-1)];
  return [
    first !== undefined && 'literal' in first ? first.literal : '',
    last !== undefined && 'literal' in last ? last.literal : '',
  ];
}
