import type { ValidateFunction } from 'ajv';
import type { Direction } from './dialect.ts';
import type { SchemaDocument } from './document.ts';
import { Engine } from './engine.ts';
import type { Lowering } from './lower.ts';
import { type SchemaNode, SchemaReader } from './node.ts';
import { ShapeTable } from './shape.ts';
import { Walker } from './walk.ts';

/** What schemas of one document share: read nodes, shapes, compiled functions. */
export class Workshop {
  readonly reader: SchemaReader;
  readonly shapes: ShapeTable;
  readonly walker: Walker;
  readonly closing: boolean;
  readonly #engines = new Map<string, Engine>();

  constructor(document: SchemaDocument, direction: Direction | undefined, closing: boolean) {
    this.reader = new SchemaReader(document, direction);
    this.shapes = new ShapeTable(closing);
    this.walker = new Walker(this.shapes);
    this.closing = closing;
  }

  compile(node: SchemaNode, lowering: Lowering): ValidateFunction {
    const key = `${lowering.precision} ${lowering.purpose}`;
    let engine = this.#engines.get(key);
    if (engine === undefined) {
      engine = new Engine(lowering);
      this.#engines.set(key, engine);
    }
    return engine.compile(node, this.closing);
  }
}

const workshops = new WeakMap<SchemaDocument, Map<string, Workshop>>();

/** The workshop of a document for one direction; made once. */
export function workshopFor(
  document: SchemaDocument,
  options: { readonly direction?: Direction; readonly closed?: boolean },
): Workshop {
  const closing = options.closed ?? true;
  const key = `${options.direction} ${closing}`;
  let ofDocument = workshops.get(document);
  if (ofDocument === undefined) {
    ofDocument = new Map();
    workshops.set(document, ofDocument);
  }
  let workshop = ofDocument.get(key);
  if (workshop === undefined) {
    workshop = new Workshop(document, options.direction, closing);
    ofDocument.set(key, workshop);
  }
  return workshop;
}
