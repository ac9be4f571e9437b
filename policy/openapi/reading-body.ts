import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import type { SchemaFault } from '../schema/walk.ts';
import type { OperationBody } from './operation.ts';
import { parsePairs, parseText, type RawPair, readQuery, single } from './query.ts';
import { type BodyPart, fault, fieldOf, type RequestBody, styleFault } from './request.ts';
import { readScalar } from './scalar.ts';
import type { Styled } from './styles.ts';

/** What the arguments of a body are read from. */
export interface IncomingBody {
  readonly body: RequestBody | undefined;
  /** Reads JSON texts inside parameters and form fields; throws for a text that is not JSON. */
  readonly parseJson: (text: string) => JsonValue;
}

/** Reads the arguments that the body carries into `args`. */
export function readBody(
  body: OperationBody | undefined,
  request: IncomingBody,
  args: Map<string, JsonValue>,
  faults: SchemaFault[],
): void {
  const value = decodeBody(body, request, faults);
  if (value === undefined) {
    if (body?.required === true && request.body === undefined) {
      faults.push(fault(body.argument ?? '', 'required', 'a body is required'));
    }
    return;
  }
  if (body === undefined) {
    faults.push({ pointer: '', rule: 'additionalProperties', message: 'a body is not declared' });
  } else if (body.argument !== undefined) {
    args.set(body.argument, value);
  } else if (isObject(value)) {
    for (const [name, item] of Object.entries(value)) {
      // The same argument from two places: which of them a backend would take is anyone's guess.
      if (args.has(name))
        faults.push(fault(name, 'additionalProperties', 'is given twice: outside the body and in it'));
      else args.set(name, item);
    }
  } else {
    faults.push({ pointer: '', rule: 'type', message: 'the body must be an object' });
  }
}

function decodeBody(
  body: OperationBody | undefined,
  request: IncomingBody,
  faults: SchemaFault[],
): JsonValue | undefined {
  const incoming = request.body;
  if (incoming === undefined) return undefined;
  if (incoming.kind === 'json') return incoming.value;
  if (body === undefined) return {};
  return incoming.kind === 'form'
    ? decodeForm(body, incoming.text, request, faults)
    : decodeParts(body, incoming.parts, request, faults);
}

function decodeForm(body: OperationBody, text: string, request: IncomingBody, faults: SchemaFault[]): JsonObject {
  const pairs = parsePairs(text, faults);
  const members = new Map<string, JsonValue>();
  const read = (name: string, own: readonly RawPair[]): void => {
    try {
      const value = readQuery({ name, ...fieldOf(body, name) }, own, request.parseJson);
      if (value !== undefined) members.set(name, value);
    } catch (cause) {
      faults.push(styleFault(name, cause));
    }
  };
  for (const name of body.fields.keys()) read(name, pairs);
  // What no declared field has taken is undeclared, which is for the schema to say.
  for (const [name, own] of Map.groupBy(
    pairs.filter(({ taken }) => !taken),
    (pair) => pair.name,
  ))
    read(name, own);
  return Object.fromEntries(members);
}

function decodeParts(
  body: OperationBody,
  parts: readonly BodyPart[],
  request: IncomingBody,
  faults: SchemaFault[],
): JsonObject {
  const byName = new Map<string, BodyPart[]>();
  for (const part of parts) {
    const same = byName.get(part.name);
    if (same === undefined) byName.set(part.name, [part]);
    else same.push(part);
  }
  const members = new Map<string, JsonValue>();
  for (const [name, same] of byName) {
    const { kind, style } = fieldOf(body, name);
    try {
      const read = (part: BodyPart, as: Styled['kind']): JsonValue =>
        as.isObject || as.isArray || style === 'json'
          ? parseText(part.text, request.parseJson)
          : readScalar(part.text, as.scalars);
      if (kind.isArray && style !== 'json') {
        members.set(
          name,
          same.map((part) => read(part, kind.item())),
        );
      } else {
        const part = single(same);
        if (part !== undefined) members.set(name, read(part, kind));
      }
    } catch (cause) {
      faults.push(styleFault(name, cause));
    }
  }
  return Object.fromEntries(members);
}
