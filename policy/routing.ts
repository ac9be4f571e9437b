import { decodePercent } from './target.ts';

/** What is routed: a method (upper case), a template such as `/orders/{order_id}`, and who it belongs to. */
export interface Routable {
  readonly name: string;
  readonly method: string;
  readonly pathTemplate: string;
}

/** A match: what was found, and the raw (still encoded) text of each path parameter. */
export interface RouteMatch<T extends Routable> {
  readonly kind: 'match';
  readonly operation: T;
  readonly rawParameters: ReadonlyMap<string, string>;
}

/** No match: the path is unknown, or known for other methods alone. */
export type RouteMiss = { readonly kind: 'unknown' } | { readonly kind: 'method'; readonly allowed: readonly string[] };

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

interface Segment {
  readonly parts: readonly Part[];
  /** The raw text where there is no parameter. */
  readonly literal: string | undefined;
  /** Same for segments that match the same texts. */
  readonly key: string;
}

interface Leaf<T> {
  readonly operation: T;
  readonly parameters: readonly string[];
}

interface TreeNode<T> {
  readonly literals: Map<string, TreeNode<T>>;
  /** Segments of literals and parameters together (`{id}.json`), the longest literals first. */
  readonly mixed: { readonly segment: Segment; readonly node: TreeNode<T> }[];
  parameter: TreeNode<T> | undefined;
  readonly leaves: Map<string, Leaf<T>>;
}

/** Finds the operation of a request. The cost depends on the path's length, not on how many operations there are. */
export class Router<T extends Routable> {
  readonly #root: TreeNode<T> = makeNode();

  /** Throws `RoutingError` for a broken template, and for two operations that could both mean the same request. */
  constructor(operations: Iterable<T>) {
    for (const operation of operations) this.#add(operation);
    refuseAmbiguity(this.#root);
  }

  /**
   * Matches raw segments, as `normalisePath` gives them, exactly: no decoding of literals, no case folding, no trailing
   * slash forgiven. A literal wins over a parameter, from the left.
   */
  match(method: string, segments: readonly string[]): RouteMatch<T> | RouteMiss {
    const values: string[] = [];
    const leaf = find(this.#root, method, segments, 0, values);
    if (leaf !== undefined) {
      const rawParameters = new Map<string, string>();
      for (let i = 0; i < leaf.parameters.length; i++) rawParameters.set(leaf.parameters[i] ?? '', values[i] ?? '');
      return { kind: 'match', operation: leaf.operation, rawParameters };
    }
    const allowed = new Set<string>();
    collectMethods(this.#root, segments, 0, allowed);
    return allowed.size === 0 ? { kind: 'unknown' } : { kind: 'method', allowed: [...allowed].sort() };
  }

  #add(operation: T): void {
    let node = this.#root;
    const parameters: string[] = [];
    for (const segment of parseTemplate(operation)) {
      node = descend(node, segment);
      for (const part of segment.parts) if ('parameter' in part) parameters.push(part.parameter);
    }
    const other = node.leaves.get(operation.method);
    if (other !== undefined) throw clash(operation, other.operation);
    node.leaves.set(operation.method, { operation, parameters });
  }
}

const MAX_COMPARISONS = 2_000_000;

function makeNode<T>(): TreeNode<T> {
  return { literals: new Map(), mixed: [], parameter: undefined, leaves: new Map() };
}

function clash(a: Routable, b: Routable): RoutingError {
  return new RoutingError(
    'template_clash',
    `\`${a.name}\` (${a.method} ${a.pathTemplate}) and \`${b.name}\` (${b.method} ${b.pathTemplate}) match the same ` +
      'requests; exclude one of them',
  );
}

/** The names of a template's parameters, in order. Throws `RoutingError` for a broken template. */
export function templateParameters(operation: Routable): string[] {
  return parseTemplate(operation).flatMap(({ parts }) =>
    parts.flatMap((part) => ('parameter' in part ? [part.parameter] : [])),
  );
}

/** Fills a template with raw texts. The parameters must all be given; literals are encoded as in a path. */
export function fillTemplate(operation: Routable, raw: ReadonlyMap<string, string>): string {
  const segments = parseTemplate(operation).map(({ parts }) =>
    parts.map((part) => ('parameter' in part ? (raw.get(part.parameter) ?? '') : part.literal)).join(''),
  );
  return `/${segments.join('/')}`;
}

function parseTemplate({ name, pathTemplate }: Routable): Segment[] {
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

function descend<T>(node: TreeNode<T>, segment: Segment): TreeNode<T> {
  if (segment.literal !== undefined) {
    let next = node.literals.get(segment.literal);
    if (next === undefined) {
      next = makeNode();
      node.literals.set(segment.literal, next);
    }
    return next;
  }
  if (segment.parts.length === 1) {
    node.parameter ??= makeNode();
    return node.parameter;
  }
  const known = node.mixed.find((entry) => entry.segment.key === segment.key);
  if (known !== undefined) return known.node;
  const made = { segment, node: makeNode<T>() };
  node.mixed.push(made);
  node.mixed.sort((a, b) => literalLength(b.segment) - literalLength(a.segment));
  return made.node;
}

function literalLength(segment: Segment): number {
  return segment.parts.reduce((sum, part) => sum + ('literal' in part ? part.literal.length : 0), 0);
}

function find<T>(
  node: TreeNode<T>,
  method: string,
  segments: readonly string[],
  at: number,
  values: string[],
): Leaf<T> | undefined {
  if (at === segments.length) return node.leaves.get(method);
  const segment = segments[at] ?? '';
  const literal = node.literals.get(segment);
  if (literal !== undefined) {
    const leaf = find(literal, method, segments, at + 1, values);
    if (leaf !== undefined) return leaf;
  }
  const before = values.length;
  for (const entry of node.mixed) {
    if (matchMixed(entry.segment, segment, values)) {
      const leaf = find(entry.node, method, segments, at + 1, values);
      if (leaf !== undefined) return leaf;
    }
    values.length = before;
  }
  if (node.parameter === undefined || segment === '') return undefined;
  values.push(segment);
  const leaf = find(node.parameter, method, segments, at + 1, values);
  if (leaf === undefined) values.length = before;
  return leaf;
}

/** Matches a segment of literals and parameters; each parameter takes the shortest text that is not empty. */
function matchMixed(segment: Segment, text: string, values: string[]): boolean {
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

function collectMethods<T>(node: TreeNode<T>, segments: readonly string[], at: number, allowed: Set<string>): void {
  if (at === segments.length) {
    for (const method of node.leaves.keys()) allowed.add(method);
    return;
  }
  const segment = segments[at] ?? '';
  const literal = node.literals.get(segment);
  if (literal !== undefined) collectMethods(literal, segments, at + 1, allowed);
  for (const entry of node.mixed) {
    if (matchMixed(entry.segment, segment, [])) collectMethods(entry.node, segments, at + 1, allowed);
  }
  if (node.parameter !== undefined && segment !== '') collectMethods(node.parameter, segments, at + 1, allowed);
}

/** Two nodes that the same path can lead to, and which of them was the more concrete one on the way. */
interface Pair<T> {
  readonly a: TreeNode<T>;
  readonly b: TreeNode<T>;
  /** Where a path leads that takes the more concrete way at each step. */
  readonly meet: TreeNode<T> | undefined;
  readonly aWins: boolean;
  readonly bWins: boolean;
}

/**
 * Two templates are ambiguous where a path matches both and each is the more concrete one somewhere (`/a/{x}` and
 * `/{y}/b`): the gateway would pick one and a backend might pick the other. Fine where a third (`/a/b`) takes what both
 * match. Walks the tree beside itself.
 */
function refuseAmbiguity<T extends Routable>(root: TreeNode<T>): void {
  const pairs: Pair<T>[] = [{ a: root, b: root, meet: root, aWins: false, bWins: false }];
  let compared = 0;
  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    compared += 1;
    if (compared > MAX_COMPARISONS) {
      throw new RoutingError(
        'template_clash',
        'the paths overlap in too many ways to compare; include fewer operations',
      );
    }
    if (pair.aWins && pair.bWins) {
      for (const [method, leaf] of pair.a.leaves) {
        const other = pair.b.leaves.get(method);
        if (other !== undefined && !pair.meet?.leaves.has(method)) throw clash(leaf.operation, other.operation);
      }
    }
    for (const next of pairsBelow(pair)) pairs.push(next);
  }
}

function* pairsBelow<T>({ a, b, meet, aWins, bWins }: Pair<T>): Generator<Pair<T>> {
  for (const [text, next] of a.literals) {
    const met = meet?.literals.get(text);
    const same = b.literals.get(text);
    if (same !== undefined) yield { a: next, b: same, meet: met, aWins, bWins };
    if (b.parameter !== undefined) yield { a: next, b: b.parameter, meet: met, aWins: true, bWins };
    for (const entry of b.mixed) {
      if (matchMixed(entry.segment, text, [])) yield { a: next, b: entry.node, meet: met, aWins: true, bWins };
    }
  }
  for (const entry of a.mixed) {
    for (const other of b.mixed) {
      if (entry.node === other.node) yield { a: entry.node, b: other.node, meet: entry.node, aWins, bWins };
      // Neither is more concrete: whatever both match is ambiguous.
      else if (mayOverlap(entry.segment, other.segment)) {
        yield { a: entry.node, b: other.node, meet: undefined, aWins: true, bWins: true };
      }
    }
    if (b.parameter !== undefined) yield { a: entry.node, b: b.parameter, meet: undefined, aWins: true, bWins };
  }
  if (a.parameter !== undefined && b.parameter !== undefined) {
    yield { a: a.parameter, b: b.parameter, meet: meet?.parameter, aWins, bWins };
  }
  // Beside itself a node gives each pair in one order already.
  if (a === b || a.parameter === undefined) return;
  for (const [text, next] of b.literals) {
    yield { a: a.parameter, b: next, meet: meet?.literals.get(text), aWins, bWins: true };
  }
  for (const entry of b.mixed) yield { a: a.parameter, b: entry.node, meet: undefined, aWins, bWins: true };
}

/** Whether some text could match both: their leading and trailing literals must agree. */
function mayOverlap(a: Segment, b: Segment): boolean {
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
