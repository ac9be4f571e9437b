import type { SchemaNode } from './node.ts';

/** The schemas that apply to one member or item, and their shape once it was asked for. */
interface Slot {
  readonly nodes: readonly SchemaNode[];
  shape: Shape | undefined;
}

/**
 * What may stand at one place of an instance: the union of what every schema that applies in place there declares
 * (through `$ref`, allOf, anyOf, oneOf, if/then/else, dependentSchemas). Names are kept in maps, never in objects, so
 * that `constructor` or `__proto__` are names like any other.
 */
export interface Shape {
  /** Whether undeclared names are refused. */
  readonly closed: boolean;
  readonly keys: ReadonlyMap<string, Slot>;
  readonly denied: ReadonlySet<string>;
  /** Declared names, folded: what a reader that ignores case would take for one of them. */
  readonly folded: ReadonlySet<string>;
  readonly inPlace: readonly SchemaNode[];
  readonly hasPatterns: boolean;
  /** How many leading items have schemas of their own. */
  readonly prefixLength: number;
  /** Shapes of the items, the last for all after the prefix; and of undeclared members. Filled on demand. */
  readonly items: (Shape | undefined)[];
  rest: Shape | undefined;
}

/**
 * Folds a name as careless readers do. Upper before lower, because readers with Unicode case folding take U+017F for `s`
 * and U+212A for `k`.
 */
export function foldName(name: string): string {
  return name.toUpperCase().toLowerCase();
}

/** All schemas that apply at the place of `nodes`, themselves included. */
export function inPlaceNodes(nodes: Iterable<SchemaNode>): Set<SchemaNode> {
  const found = new Set<SchemaNode>();
  const visit = (node: SchemaNode | undefined): void => {
    if (node === undefined || found.has(node)) return;
    found.add(node);
    visit(node.reference());
    for (const branch of inPlaceBranches(node)) visit(branch);
  };
  for (const node of nodes) visit(node);
  return found;
}

/** The subschemas of a node that apply to the same value as itself, `$ref` and `not` aside. */
export function* inPlaceBranches(node: SchemaNode): Generator<SchemaNode> {
  yield* node.allOf;
  yield* node.anyOf;
  yield* node.oneOf;
  if (node.condition !== undefined) {
    yield node.condition;
    // Without a condition these are never applied.
    if (node.consequence !== undefined) yield node.consequence;
    if (node.alternative !== undefined) yield node.alternative;
  }
  yield* node.dependentSchemas.values();
}

/** How a place treats undeclared names. */
export interface Openness {
  /** Some schema there lists properties, or says that there are no others. */
  readonly declares: boolean;
  /** Some schema there lets undeclared names in, in so many words. */
  readonly opens: boolean;
  readonly closed: boolean;
}

/** Closed where some schema declares names and none opens the place explicitly. */
export function opennessOf(inPlace: Iterable<SchemaNode>): Openness {
  let declares = false;
  let opens = false;
  for (const node of inPlace) {
    if (node.properties !== undefined || node.patternProperties.length > 0) declares = true;
    for (const rest of [node.additionalProperties, node.unevaluatedProperties]) {
      if (rest === undefined) continue;
      if (rest.always === false) declares = true;
      else opens = true;
    }
  }
  return { declares, opens, closed: declares && !opens };
}

/** Makes shapes on demand and keeps them; `closing: false` makes every place open. */
export class ShapeTable {
  readonly #closing: boolean;
  readonly #shapes = new Map<string, Shape>();

  constructor(closing: boolean) {
    this.#closing = closing;
  }

  /** The shape of the place where `nodes` apply. */
  shapeOf(nodes: readonly SchemaNode[]): Shape {
    const key = nodes
      .map((node) => node.id)
      .sort((a, b) => a - b)
      .join();
    let shape = this.#shapes.get(key);
    if (shape === undefined) {
      if (this.#shapes.size >= MAX_SHAPES) throw new RangeError('the schema has more places than can be kept');
      shape = this.#build(nodes);
      this.#shapes.set(key, shape);
    }
    return shape;
  }

  /** The shape of the member `name`: undefined where the place does not declare it. */
  member(shape: Shape, name: string): Shape | undefined {
    const slot = shape.keys.get(name);
    if (slot !== undefined && !shape.hasPatterns) {
      slot.shape ??= this.shapeOf(slot.nodes);
      return slot.shape;
    }
    const nodes = slot === undefined ? [] : [...slot.nodes];
    let declared = slot !== undefined;
    for (const node of shape.inPlace) {
      for (const { pattern, node: child } of node.patternProperties) {
        if (!pattern.test(name)) continue;
        nodes.push(child);
        declared = true;
      }
    }
    if (!declared) return undefined;
    return this.shapeOf([...new Set(nodes)]);
  }

  /** The shape of an undeclared member of an open place. */
  rest(shape: Shape): Shape {
    if (shape.rest !== undefined) return shape.rest;
    const nodes = new Set<SchemaNode>();
    for (const node of shape.inPlace) {
      if (node.additionalProperties !== undefined) nodes.add(node.additionalProperties);
      if (node.unevaluatedProperties !== undefined) nodes.add(node.unevaluatedProperties);
    }
    shape.rest = this.shapeOf([...nodes]);
    return shape.rest;
  }

  /** The shape of the item at an index. */
  item(shape: Shape, index: number): Shape {
    const position = Math.min(index, shape.prefixLength);
    const known = shape.items[position];
    if (known !== undefined) return known;
    const nodes = new Set<SchemaNode>();
    for (const node of shape.inPlace) {
      const own = node.prefixItems[position] ?? node.items;
      if (own !== undefined) nodes.add(own);
      if (node.contains !== undefined) nodes.add(node.contains);
      if (node.unevaluatedItems !== undefined) nodes.add(node.unevaluatedItems);
    }
    const made = this.shapeOf([...nodes]);
    shape.items[position] = made;
    return made;
  }

  #build(nodes: readonly SchemaNode[]): Shape {
    const inPlace = [...inPlaceNodes(nodes)];
    const names = new Map<string, Set<SchemaNode>>();
    const denied = new Set<string>();
    for (const node of inPlace) {
      for (const [name, child] of node.properties ?? []) {
        const slot = names.get(name);
        if (slot === undefined) names.set(name, new Set([child]));
        else slot.add(child);
      }
      for (const name of node.denied) denied.add(name);
    }
    for (const name of names.keys()) denied.delete(name);
    for (const node of inPlace) addRest(node, names);
    return {
      closed: this.#closing && opennessOf(inPlace).closed,
      keys: new Map([...names].map(([name, slot]) => [name, { nodes: [...slot], shape: undefined }])),
      denied: this.#closing ? denied : new Set(),
      folded: new Set([...names.keys()].map(foldName)),
      inPlace,
      hasPatterns: inPlace.some((node) => node.patternProperties.length > 0),
      prefixLength: inPlace.reduce((most, node) => Math.max(most, node.prefixItems.length), 0),
      items: [],
      rest: undefined,
    };
  }
}

const MAX_SHAPES = 50_000;

/** A name that one branch declares is an additional one for another that describes its additional names. */
function addRest(node: SchemaNode, names: ReadonlyMap<string, Set<SchemaNode>>): void {
  const rest = node.additionalProperties ?? node.unevaluatedProperties;
  if (rest === undefined || rest.always !== undefined) return;
  for (const [name, slot] of names) if (node.properties?.has(name) !== true) slot.add(rest);
}
