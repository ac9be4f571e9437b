import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { isArray, isObject } from '../schema/dialect.ts';
import type { SchemaFault } from '../schema/walk.ts';
import { pathTextFault } from '../target.ts';
import type { Operation, OperationBody, Parameter } from './operation.ts';
import { type BodyPart, type Carried, fault, fieldOf, type RequestBody, styleFault } from './request.ts';
import { readScalar } from './scalar.ts';
import { type Pair, PERCENT, PLAIN, readDeep, readMembers, type Styled, StyleError, splitValue } from './styles.ts';

/** What of a request an operation's arguments are read from. */
export interface IncomingRequest {
  /** Raw path parameters, as the router gives them. */
  readonly rawParameters: ReadonlyMap<string, string>;
  /** Raw query without `?`. */
  readonly rawQuery: string | undefined;
  /** Every value of a header, in order, by lower-case name; empty where it was not sent. */
  readonly header: (name: string) => readonly string[];
  readonly body: RequestBody | undefined;
  /** Reads JSON texts inside parameters and form fields; throws for a text that is not JSON. */
  readonly parseJson: (text: string) => JsonValue;
}

/**
 * Reads the arguments of a call out of a request that was matched to an operation. A query parameter or form field that
 * is not declared, a second value for a single one, and a text that cannot be read are faults with the pointer of the
 * argument; whether the values are right is the schema's to say.
 */
export function readRequest(operation: Operation, request: IncomingRequest): Carried<JsonObject> {
  const faults: SchemaFault[] = [];
  const args = new Map<string, JsonValue>();
  const query = parsePairs(request.rawQuery ?? '', faults);
  const cookies = operation.parameters.some(({ place }) => place === 'cookie')
    ? parseCookies(request.header('cookie'))
    : [];
  for (const parameter of operation.parameters) {
    try {
      const value = readParameter(parameter, request, query, cookies);
      if (value !== undefined) args.set(parameter.argument, value);
    } catch (cause) {
      faults.push(styleFault(parameter.argument, cause));
    }
  }
  for (const { name, taken } of query) {
    if (!taken) faults.push(fault(name, 'additionalProperties', 'is not declared'));
  }
  readBody(operation.body, request, args, faults);
  return faults.length > 0 ? { ok: false, faults } : { ok: true, value: Object.fromEntries(args) };
}

/** One pair of a query or form: the name decoded, the value raw, and whether some parameter took it. */
interface RawPair {
  readonly name: string;
  readonly raw: string;
  taken: boolean;
}

function parsePairs(text: string, faults: SchemaFault[]): RawPair[] {
  const pairs: RawPair[] = [];
  for (const piece of text.split('&')) {
    if (piece === '') continue;
    const at = piece.indexOf('=');
    // In queries as in forms `+` is a space to most readers; it is sent on as `%20`, which it is to all of them.
    const [rawName, raw] = at < 0 ? [piece, ''] : [piece.slice(0, at), piece.slice(at + 1).replaceAll('+', '%20')];
    try {
      pairs.push({ name: PERCENT.decode(rawName.replaceAll('+', '%20')), raw, taken: false });
    } catch (cause) {
      faults.push(styleFault(rawName, cause));
    }
  }
  return pairs;
}

function parseCookies(headers: readonly string[]): RawPair[] {
  return headers
    .flatMap((header) => header.split(';'))
    .flatMap((piece) => {
      const at = piece.indexOf('=');
      return at < 0 ? [] : [{ name: piece.slice(0, at).trim(), raw: piece.slice(at + 1).trim(), taken: false }];
    });
}

function readParameter(
  parameter: Parameter,
  request: IncomingRequest,
  query: readonly RawPair[],
  cookies: readonly RawPair[],
): JsonValue | undefined {
  const { name, place, kind, explode } = parameter;
  if (place === 'path') return readPath(parameter, request);
  if (place === 'query') return readQuery(parameter, query, request.parseJson);
  if (place === 'cookie') {
    const found = cookies.filter((cookie) => cookie.name === name);
    const first = single(found);
    return first === undefined ? undefined : splitValue(first.raw, ',', false, kind, PERCENT);
  }
  const values = request.header(name.toLowerCase());
  if (values.length > 1 && !kind.isArray) throw new StyleError('must be given once');
  if (values.length === 0) return undefined;
  const text = values.map((value) => value.trim()).join(',');
  if (parameter.style === 'json') return parseText(text, request.parseJson);
  return splitValue(text, /, ?/, explode, kind, PLAIN);
}

function single<T>(found: readonly T[]): T | undefined {
  if (found.length > 1) throw new StyleError('must be given once');
  return found[0];
}

function parseText(text: string, parseJson: (text: string) => JsonValue): JsonValue {
  try {
    return parseJson(text);
  } catch {
    throw new StyleError('must be JSON');
  }
}

function readPath({ name, style, explode, kind }: Parameter, request: IncomingRequest): JsonValue {
  const raw = request.rawParameters.get(name);
  if (raw === undefined) throw new StyleError('is required');
  if (style === 'json') return parseText(PERCENT.decode(raw), request.parseJson);
  if (style === 'label') {
    if (!raw.startsWith('.')) throw new StyleError('must start with a dot');
    return checkPath(splitValue(raw.slice(1), explode ? '.' : ',', explode, kind, PERCENT));
  }
  if (style === 'matrix') return checkPath(readMatrix(raw, name, explode, { kind }));
  if (raw.includes(';')) throw new StyleError('must not hold `;`');
  return checkPath(splitValue(raw, ',', explode, kind, PERCENT));
}

function readMatrix(raw: string, name: string, explode: boolean, { kind }: Pick<Styled, 'kind'>): JsonValue {
  if (!raw.startsWith(';')) throw new StyleError('must start with `;`');
  const pairs = raw
    .slice(1)
    .split(';')
    .map((piece): [string, string] => {
      const at = piece.indexOf('=');
      return at < 0 ? [PERCENT.decode(piece), ''] : [PERCENT.decode(piece.slice(0, at)), piece.slice(at + 1)];
    });
  if (explode && kind.isObject)
    return readMembers(
      pairs.map(([key, text]) => [key, PERCENT.decode(text)]),
      kind,
    );
  if (pairs.some(([key]) => key !== name)) throw new StyleError(`must be written as \`;${name}=\``);
  if (explode && kind.isArray) {
    const { scalars } = kind.item();
    return pairs.map(([, text]) => readScalar(PERCENT.decode(text), scalars));
  }
  const first = single(pairs);
  return splitValue(first?.[1] ?? '', ',', false, kind, PERCENT);
}

/** No text read from a path may be one that could not be written into it. */
function checkPath(value: JsonValue): JsonValue {
  const scalars = isArray(value) ? value : isObject(value) ? Object.values(value) : [value];
  for (const scalar of scalars) {
    const reason = typeof scalar === 'string' ? pathTextFault(scalar) : undefined;
    if (reason !== undefined) throw new StyleError(`${reason}, since it is part of the path`);
  }
  return value;
}

const DELIMITERS: Readonly<Record<string, RegExp>> = {
  form: /,/,
  spaceDelimited: /%20/,
  pipeDelimited: /\||%7[Cc]/,
  tabDelimited: /%09/,
};

function readQuery(
  parameter: Styled,
  pairs: readonly RawPair[],
  parseJson: (text: string) => JsonValue,
): JsonValue | undefined {
  const { name, style, explode, kind } = parameter;
  if (style === 'deepObject') return readDeepPairs(name, pairs, kind);
  if (style === 'form' && explode && kind.isObject) {
    const own = take(pairs, (pair) => kind.names.includes(pair.name));
    if (own.length === 0) return undefined;
    return readMembers(
      own.map((pair): Pair => [pair.name, PERCENT.decode(pair.raw)]),
      kind,
    );
  }
  const own = take(pairs, (pair) => pair.name === name);
  if (own.length === 0) return undefined;
  if (explode && kind.isArray && style !== 'json') {
    const { scalars } = kind.item();
    return own.map(({ raw }) => readScalar(PERCENT.decode(raw), scalars));
  }
  const first = single(own);
  if (first === undefined) return undefined;
  if (style === 'json') return parseText(PERCENT.decode(first.raw), parseJson);
  return splitValue(first.raw, DELIMITERS[style] ?? ',', false, kind, PERCENT);
}

function take(pairs: readonly RawPair[], wanted: (pair: RawPair) => boolean): RawPair[] {
  const own = pairs.filter(wanted);
  for (const pair of own) pair.taken = true;
  return own;
}

function readDeepPairs(name: string, pairs: readonly RawPair[], kind: Styled['kind']): JsonValue | undefined {
  const own = take(pairs, (pair) => pair.name === name || pair.name.startsWith(`${name}[`));
  if (own.length === 0) return undefined;
  return readDeep(
    own.map((pair) => [bracketPath(pair.name.slice(name.length)), PERCENT.decode(pair.raw)] as const),
    kind,
  );
}

/** `[a][b]` as `a`, `b`. */
function bracketPath(text: string): string[] {
  if (text === '') return [];
  if (!text.startsWith('[') || !text.endsWith(']')) throw new StyleError('must be written as `name[member]`');
  const parts = text.slice(1, -1).split('][');
  if (parts.some((part) => part.includes('[') || part.includes(']'))) {
    throw new StyleError('must be written as `name[member]`');
  }
  return parts;
}

function readBody(
  body: OperationBody | undefined,
  request: IncomingRequest,
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
  request: IncomingRequest,
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

function decodeForm(body: OperationBody, text: string, request: IncomingRequest, faults: SchemaFault[]): JsonObject {
  const pairs = parsePairs(text, faults);
  const members = new Map<string, JsonValue>();
  const names = new Set([...body.fields.keys(), ...pairs.map(({ name }) => name)]);
  for (const name of names) {
    // A pair that a declared field has taken (`a[b]=c`) is no field of its own.
    if (!body.fields.has(name) && pairs.every((pair) => pair.name !== name || pair.taken)) continue;
    try {
      const value = readQuery({ name, ...fieldOf(body, name) }, pairs, request.parseJson);
      if (value !== undefined) members.set(name, value);
    } catch (cause) {
      faults.push(styleFault(name, cause));
    }
  }
  return Object.fromEntries(members);
}

function decodeParts(
  body: OperationBody,
  parts: readonly BodyPart[],
  request: IncomingRequest,
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
