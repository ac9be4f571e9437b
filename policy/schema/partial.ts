import { isArray, isObject } from '../../receipts/json-value.ts';
import { SchemaError, type SchemaNode } from './node.ts';
import { inPlaceBranches, inPlaceNodes, opennessOf } from './shape.ts';
import { escapeToken } from './walk.ts';

/** A schema of more parts than this is not compiled: it would hold the process for seconds. */
const MAX_NODES = 40_000;
const MAX_REASONS = 20;
/** Begins a reason that is no slip: the schema says nothing of what may stand at a place. */
export const FREE_FORM = 'anything may stand here';

/**
 * Goes through everything that a schema reaches. Returns why it cannot be enforced in full, each reason with the place
 * where it was found first (`*` for any name or index), at most 20. Throws `SchemaError` for a schema that cannot be
 * used: too large, or one that refers to itself without going into a value.
 */
export function partialReasons(root: SchemaNode): readonly string[] {
  const reasons = new Map<string, string>();
  const places = new Set<SchemaNode>();
  const queue: [SchemaNode, string][] = [[root, '']];
  const seen = new Set<SchemaNode>();
  // A queue that grows while it is gone through: places nearest to the root are met first and name the reason.
  for (const [place, path] of queue) {
    if (places.has(place)) continue;
    places.add(place);
    refuseLoops(place, path);
    const inPlace = inPlaceNodes([place]);
    // Arguments and results are objects, so an array at the top is nobody's concern.
    if (path === '' ? admitsFreeObject(place, inPlace) : isFreeForm(place, inPlace)) note(reasons, FREE_FORM, path);
    for (const node of inPlace) {
      if (seen.has(node)) continue;
      seen.add(node);
      if (seen.size > MAX_NODES) throw new SchemaError(`the schema has more than ${MAX_NODES} parts`);
      for (const reason of node.partial) note(reasons, reason, path);
      if (lacksSubtypes(node))
        note(reasons, 'members of subtypes are not admitted (a discriminator without oneOf)', path);
      if (node.unevaluatedItems !== undefined && inPlace.size + (node.contains === undefined ? 0 : 1) > 1) {
        note(reasons, '`unevaluatedItems` beside other schemas of the items is not enforced in full', path);
      }
      if (node.not !== undefined) queue.push([node.not, path]);
      if (node.propertyNames !== undefined) queue.push([node.propertyNames, path]);
      for (const child of placesBelow(node)) queue.push([child[0], `${path}/${child[1]}`]);
    }
  }
  const all = [...reasons.values()];
  if (all.length <= MAX_REASONS) return all;
  return [...all.slice(0, MAX_REASONS), `and ${all.length - MAX_REASONS} more`];
}

function note(reasons: Map<string, string>, reason: string, path: string): void {
  const where = path === '' ? '' : ` (at \`${path.length > 200 ? `${path.slice(0, 200)}…` : path}\`)`;
  // A fault of a shared component is told once; free-form values are told for each place.
  const key = reason === FREE_FORM ? reason + path : reason;
  if (!reasons.has(key)) reasons.set(key, reason + where);
}

function* placesBelow(node: SchemaNode): Generator<readonly [SchemaNode, string]> {
  for (const [name, child] of node.properties ?? []) yield [child, escapeToken(name)];
  for (const { node: child } of node.patternProperties) yield [child, '*'];
  for (const rest of [node.additionalProperties, node.unevaluatedProperties]) if (rest !== undefined) yield [rest, '*'];
  for (const [i, child] of node.prefixItems.entries()) yield [child, String(i)];
  for (const rest of [node.items, node.unevaluatedItems]) if (rest !== undefined) yield [rest, '*'];
}

/** A place that lets in an object or an array of whose content nothing is known. */
function isFreeForm(place: SchemaNode, inPlace: ReadonlySet<SchemaNode>): boolean {
  return admitsFreeObject(place, inPlace) || !admitsOnlyTypedItems(place, inPlace);
}

function admitsFreeObject(place: SchemaNode, inPlace: ReadonlySet<SchemaNode>): boolean {
  if (place.always === false || !admits(place, 'object', new Set())) return false;
  const { declares, opens } = opennessOf(inPlace);
  if (!opens) return !declares;
  // Where a schema opens the place to members that it describes, those are looked at where they stand.
  return [...inPlace].some((node) => node.additionalProperties?.always || node.unevaluatedProperties?.always);
}

/** False for a place that lets in an array of whose items nothing is known. */
function admitsOnlyTypedItems(place: SchemaNode, inPlace: ReadonlySet<SchemaNode>): boolean {
  if (place.always === false || !admits(place, 'array', new Set())) return true;
  return [...inPlace].some((node) => node.items !== undefined || node.unevaluatedItems !== undefined);
}

/** Whether a schema lets in some value of a type, judged by `type`, `enum` and `const` alone. */
function admits(node: SchemaNode, type: 'object' | 'array', visiting: Set<SchemaNode>): boolean {
  if (node.always !== undefined) return node.always;
  if (visiting.has(node)) return true;
  visiting.add(node);
  const { type: types, enum: values } = node.assertions;
  if (typeof types === 'string' && types !== type) return false;
  if (isArray(types) && !types.includes(type)) return false;
  // Listed values are enforced whole, whatever they hold.
  if (values !== undefined || 'const' in node.assertions) return false;
  const target = node.reference();
  if (target !== undefined && !admits(target, type, visiting)) return false;
  if (!node.allOf.every((branch) => admits(branch, type, visiting))) return false;
  for (const branches of [node.anyOf, node.oneOf]) {
    if (branches.length > 0 && !branches.some((branch) => admits(branch, type, visiting))) return false;
  }
  return true;
}

/** A discriminator in a base schema means its subtypes' members too, which nothing in the base leads to. */
function lacksSubtypes(node: SchemaNode): boolean {
  return (
    isObject(node.source) &&
    isObject(node.source['discriminator']) &&
    node.anyOf.length === 0 &&
    node.oneOf.length === 0
  );
}

/** A schema that applies itself to the same value again never ends. */
function refuseLoops(place: SchemaNode, path: string): void {
  const done = new Set<SchemaNode>();
  const onWay = new Set<SchemaNode>();
  const visit = (node: SchemaNode | undefined): void => {
    if (node === undefined || done.has(node)) return;
    if (onWay.has(node)) {
      throw new SchemaError(`the schema at \`${path}\` refers to itself without going into a value`);
    }
    onWay.add(node);
    visit(node.reference());
    for (const branch of inPlaceBranches(node)) visit(branch);
    if (node.not !== undefined) visit(node.not);
    onWay.delete(node);
    done.add(node);
  };
  visit(place);
}
