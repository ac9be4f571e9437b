import {
  literalLength,
  matchesTemplate,
  matchMixed,
  parseTemplate,
  type Routable,
  type Segment,
} from './route-template.ts';
import { clash, findCrossings, type Leaf, makeNode, type TreeNode } from './route-tree.ts';

/** A match: what was found, and the raw (still encoded) text of each path parameter. */
export interface RouteMatch<T extends Routable> {
  readonly kind: 'match';
  readonly operation: T;
  readonly rawParameters: ReadonlyMap<string, string>;
}

/** No match: the path is unknown, known for other methods alone, or could be meant for either of two operations. */
export type RouteMiss =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'method'; readonly allowed: readonly string[] }
  | { readonly kind: 'ambiguous'; readonly names: readonly [string, string] };

/** How templates are treated that cross: `/a/{x}` and `/{y}/b`, of which neither is the more concrete one. */
export interface RouterOptions {
  /**
   * `error` (the default) refuses them at load; `refuse_request` lets them stand and refuses the requests that both
   * match (`/a/b`), for documents that were written by others.
   */
  readonly crossing?: 'error' | 'refuse_request';
}

/** Finds the operation of a request. The cost depends on the path's length, not on how many operations there are. */
export class Router<T extends Routable> {
  readonly #root: TreeNode<T> = makeNode();

  /** Throws `RoutingError` for a broken template, and for two operations that could both mean the same request. */
  constructor(operations: Iterable<T>, options: RouterOptions = {}) {
    for (const operation of operations) this.#add(operation);
    findCrossings(this.#root, (a, b) => {
      if (options.crossing !== 'refuse_request') throw clash(a.operation, b.operation);
      a.rivals.push({ name: b.operation.name, template: parseTemplate(b.operation) });
      b.rivals.push({ name: a.operation.name, template: parseTemplate(a.operation) });
    });
  }

  /**
   * Matches raw segments, as `normalisePath` gives them, exactly: no decoding of literals, no case folding, no trailing
   * slash forgiven. A literal wins over a parameter, from the left.
   */
  match(method: string, segments: readonly string[]): RouteMatch<T> | RouteMiss {
    const values: string[] = [];
    const leaf = find(this.#root, method, segments, 0, values);
    if (leaf !== undefined) {
      const rival = leaf.rivals.find(({ template }) => matchesTemplate(template, segments));
      if (rival !== undefined) return { kind: 'ambiguous', names: [leaf.operation.name, rival.name] };
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
    node.leaves.set(operation.method, { operation, parameters, rivals: [] });
  }
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
