import { isArray, isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import type { SchemaFault } from '../schema/walk.ts';
import { pathTextFault } from '../target.ts';
import type { Operation, Parameter } from './operation.ts';
import { parsePairs, parseText, type RawPair, readQuery, single } from './query.ts';
import { type IncomingBody, readBody } from './reading-body.ts';
import { type Carried, fault, styleFault } from './request.ts';
import { readScalar } from './scalar.ts';
import { PERCENT, PLAIN, readMembers, type Styled, StyleError, splitValue } from './styles.ts';

/** What of a request an operation's arguments are read from. */
export interface IncomingRequest extends IncomingBody {
  /** Raw path parameters, as the router gives them. */
  readonly rawParameters: ReadonlyMap<string, string>;
  /** Raw query without `?`. */
  readonly rawQuery: string | undefined;
  /** Every value of a header, in order, by lower-case name; empty where it was not sent. */
  readonly header: (name: string) => readonly string[];
}

const MAX_FAULTS = 20;

/**
 * Reads the arguments of a call out of a request that was matched to an operation. A query parameter or form field that
 * is not declared, a second value for a single one, and a text that cannot be read are faults with the pointer of the
 * argument; whether the values are right is the schema's to say.
 */
export function readRequest(operation: Operation, request: IncomingRequest): Carried<JsonObject> {
  const whole = wholeBody(operation, request);
  if (whole !== undefined) return { ok: true, value: whole };
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
    if (!taken && faults.length < MAX_FAULTS) faults.push(fault(name, 'additionalProperties', 'is not declared'));
  }
  readBody(operation.body, request, args, faults);
  return faults.length > 0 ? { ok: false, faults } : { ok: true, value: Object.fromEntries(args) };
}

/** The body where it is the arguments, all of them: an operation of JSON without parameters, and no query. */
function wholeBody({ parameters, body }: Operation, request: IncomingRequest): JsonObject | undefined {
  if (parameters.length > 0 || body?.argument !== undefined || request.rawQuery !== undefined) return undefined;
  const incoming = request.body;
  return body !== undefined && incoming?.kind === 'json' && isObject(incoming.value) ? incoming.value : undefined;
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
