import { isArray, type JsonValue } from '../../receipts/json-value.ts';
import type { Shape, ShapeTable } from './shape.ts';

/** Types of values that are one text in a path, query, header or form. */
export type ScalarType = 'string' | 'integer' | 'number' | 'boolean' | 'null';

/** What a schema lets a value be, as far as it matters for reading the value from text. */
export interface ValueKind {
  /** Scalar types that are let in; empty where the schema names no type, so that a text stays a text. */
  readonly scalars: ReadonlySet<ScalarType>;
  readonly isArray: boolean;
  readonly isObject: boolean;
  /** Declared names, where objects are let in, in schema order. */
  readonly names: readonly string[];
  /** The kind of the items. */
  item(): ValueKind;
  /** The kind of a member; undefined where the schema lets no such member in. */
  member(name: string): ValueKind | undefined;
}

/** A value of which nothing is known: its text stays a text. */
export const TEXT_KIND: ValueKind = {
  scalars: new Set(),
  isArray: false,
  isObject: false,
  names: [],
  item: () => TEXT_KIND,
  member: () => undefined,
};

const SCALARS: readonly ScalarType[] = ['string', 'integer', 'number', 'boolean', 'null'];

/** The kind of what may stand at a place: whatever any schema that applies there names. */
export function kindOfShape(shape: Shape, shapes: ShapeTable): ValueKind {
  const types = typesAt(shape);
  const unnamed = types.size === 0;
  const isObject = types.has('object') || (unnamed && shape.keys.size > 0);
  return {
    scalars: new Set(SCALARS.filter((type) => types.has(type))),
    isArray: types.has('array') || (unnamed && shape.inPlace.some((node) => node.items !== undefined)),
    isObject,
    names: isObject ? [...shape.keys.keys()] : [],
    item: () => kindOfShape(shapes.item(shape, shape.prefixLength), shapes),
    member: (name) => {
      const declared = shapes.member(shape, name);
      if (declared !== undefined) return kindOfShape(declared, shapes);
      return isObject && !shape.closed ? kindOfShape(shapes.rest(shape), shapes) : undefined;
    },
  };
}

function typesAt(shape: Shape): Set<string> {
  const types = new Set<string>();
  for (const node of shape.inPlace) {
    const { type, enum: values } = node.assertions;
    if (typeof type === 'string') types.add(type);
    else if (isArray(type)) for (const one of type) types.add(String(one));
    else if (isArray(values)) for (const value of values) types.add(typeOf(value));
    else if ('const' in node.assertions) types.add(typeOf(node.assertions['const'] ?? null));
  }
  return types;
}

function typeOf(value: JsonValue): string {
  if (value === null) return 'null';
  if (isArray(value)) return 'array';
  if (typeof value === 'bigint') return 'integer';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}
