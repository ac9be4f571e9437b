import { matchMixed, mayOverlap, type Routable, RoutingError, type Segment } from './route-template.ts';

/** An operation at the end of its path. */
export interface Leaf<T> {
  readonly operation: T;
  readonly parameters: readonly string[];
  /** Templates that cross this one, by the operations they belong to. */
  readonly rivals: { readonly name: string; readonly template: readonly Segment[] }[];
}

/** The operations below a path, by what its next segment may be. */
export interface TreeNode<T> {
  readonly literals: Map<string, TreeNode<T>>;
  /** Segments of literals and parameters together (`{id}.json`), the longest literals first. */
  readonly mixed: { readonly segment: Segment; readonly node: TreeNode<T> }[];
  parameter: TreeNode<T> | undefined;
  readonly leaves: Map<string, Leaf<T>>;
}

/** A node with nothing below it. */
export function makeNode<T>(): TreeNode<T> {
  return { literals: new Map(), mixed: [], parameter: undefined, leaves: new Map() };
}

/** The error that two operations match the same requests. */
export function clash(a: Routable, b: Routable): RoutingError {
  return new RoutingError(
    'template_clash',
    `\`${a.name}\` (${a.method} ${a.pathTemplate}) and \`${b.name}\` (${b.method} ${b.pathTemplate}) match the same ` +
      'requests; exclude one of them',
  );
}

const MAX_COMPARISONS = 2_000_000;

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
export function findCrossings<T extends Routable>(root: TreeNode<T>, found: (a: Leaf<T>, b: Leaf<T>) => void): void {
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
        if (other !== undefined && !pair.meet?.leaves.has(method)) found(leaf, other);
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
