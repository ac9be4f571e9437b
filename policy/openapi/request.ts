import { isArray, isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { fillTemplate } from '../route-template.ts';
import { member } from '../schema/dialect.ts';
import { TEXT_KIND } from '../schema/kinds.ts';
import { escapeToken, type SchemaFault } from '../schema/walk.ts';
import { hasControl, pathTextFault } from '../target.ts';
import type { FormField, Operation, OperationBody, Parameter } from './operation.ts';
import { joinValue, jsonText, type Pair, PERCENT, PLAIN, type Styled, StyleError, writePairs } from './styles.ts';

/** One part of a multipart body. */
export interface BodyPart {
  readonly name: string;
  readonly contentType: string | undefined;
  readonly text: string;
}

/** The body of a request, as far as it is settled here: the caller writes JSON canonically and chooses a boundary. */
export type RequestBody =
  | { readonly kind: 'json'; readonly value: JsonValue }
  | { readonly kind: 'form'; readonly text: string }
  | { readonly kind: 'multipart'; readonly parts: readonly BodyPart[] };

/** A request to a backend, made of checked arguments. */
export interface BuiltRequest {
  readonly method: string;
  /** Percent-encoded path below the base path, starting with `/`. */
  readonly rawPath: string;
  /** Percent-encoded query without `?`; empty for none. */
  readonly rawQuery: string;
  /** Header parameters and `cookie`, lower case names. */
  readonly headers: readonly Pair[];
  readonly body: RequestBody | undefined;
}

/** What building or reading gives: the thing, or the faults of the arguments. */
export type Carried<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly faults: SchemaFault[] };

/** A request as written, with the raw text of each path parameter. */
export interface WrittenRequest extends BuiltRequest {
  readonly rawParameters: ReadonlyMap<string, string>;
}

/** Writes the request of a call; whether it would be read as the same call is for `buildRequest` to see. */
export function writeRequest(operation: Operation, args: JsonObject): Carried<WrittenRequest> {
  const faults: SchemaFault[] = [];
  const used = new Set<string>();
  const rawPath = new Map<string, string>();
  const query: string[] = [];
  const headers: Pair[] = [];
  const cookies: string[] = [];
  for (const parameter of operation.parameters) {
    used.add(parameter.argument);
    const value = member(args, parameter.argument);
    if (value === undefined) {
      if (parameter.required) faults.push(fault(parameter.argument, 'required', 'is required'));
      continue;
    }
    try {
      if (parameter.place === 'path') rawPath.set(parameter.name, writePath(parameter, value));
      else if (parameter.place === 'query') query.push(writeQuery(parameter, value));
      else if (parameter.place === 'header')
        headers.push([parameter.name.toLowerCase(), writeHeader(parameter, value)]);
      else cookies.push(`${parameter.name}=${joinValue(value, ',', false, PERCENT)}`);
    } catch (cause) {
      faults.push(styleFault(parameter.argument, cause));
    }
  }
  if (cookies.length > 0) headers.push(['cookie', cookies.join('; ')]);
  const body = buildBody(operation.body, args, used, faults);
  for (const name of Object.keys(args)) {
    if (!used.has(name)) faults.push(fault(name, 'additionalProperties', 'is not declared'));
  }
  if (faults.length > 0) return { ok: false, faults };
  return {
    ok: true,
    value: {
      method: operation.method,
      rawPath: fillTemplate(operation, rawPath),
      rawParameters: rawPath,
      rawQuery: query.join('&'),
      headers,
      body,
    },
  };
}

/** A fault of one argument. */
export function fault(argument: string, rule: string, message: string): SchemaFault {
  return { pointer: `/${escapeToken(argument)}`, rule, message };
}

/** The fault that a `StyleError` is; anything else is thrown on. */
export function styleFault(argument: string, cause: unknown): SchemaFault {
  if (cause instanceof StyleError) return fault(argument, 'style', cause.message);
  throw cause;
}

function writePath({ name, style, explode }: Parameter, value: JsonValue): string {
  if (style === 'json') return PERCENT.encode(checkedPathText(jsonText(value)));
  for (const text of texts(value)) checkedPathText(text);
  if (style === 'label') return `.${joinValue(value, explode ? '.' : ',', explode, PERCENT)}`;
  if (style !== 'matrix') return joinValue(value, ',', explode, PERCENT);
  const encoded = PERCENT.encode(name);
  if (isObject(value) && explode) return `;${joinValue(value, ';', true, PERCENT)}`;
  if (isArray(value) && explode)
    return joinValue(value, '\n', false, PERCENT)
      .split('\n')
      .map((item) => `;${encoded}=${item}`)
      .join('');
  return `;${encoded}=${joinValue(value, ',', false, PERCENT)}`;
}

function checkedPathText(text: string): string {
  const reason = pathTextFault(text);
  if (reason !== undefined) throw new StyleError(`${reason}, since it is part of the path`);
  return text;
}

/** Every text of a value that is written, member names included. */
function* texts(value: JsonValue): Generator<string> {
  if (isArray(value)) for (const item of value) yield* texts(item);
  else if (isObject(value)) {
    for (const [key, part] of Object.entries(value)) {
      yield key;
      yield* texts(part);
    }
  } else yield typeof value === 'string' ? value : String(value);
}

const DELIMITERS: Readonly<Record<string, string>> = {
  spaceDelimited: '%20',
  pipeDelimited: '%7C',
  tabDelimited: '%09',
};

function writeQuery(parameter: Styled, value: JsonValue): string {
  const { name, style, explode } = parameter;
  const spread = explode || style === 'json' || style === 'deepObject' || !(isArray(value) || isObject(value));
  if (spread) {
    return writePairs(value, parameter)
      .map(([key, text]) => `${PERCENT.encode(key)}=${PERCENT.encode(text)}`)
      .join('&');
  }
  return `${PERCENT.encode(name)}=${joinValue(value, DELIMITERS[style] ?? ',', false, PERCENT)}`;
}

function writeHeader({ style, explode }: Parameter, value: JsonValue): string {
  const text = style === 'json' ? jsonText(value) : joinValue(value, ',', explode, PLAIN);
  // RFC 9110 section 5.5: field values are visible ASCII, spaces and tabs within; other octets are opaque to readers.
  if (hasControl(text) || !/^[\x20-\x7e]*$/.test(text))
    throw new StyleError('must be visible ASCII, since it is a header');
  if (text.trim() !== text) throw new StyleError('must not start or end with a space, since it is a header');
  return text;
}

function buildBody(
  body: OperationBody | undefined,
  args: JsonObject,
  used: Set<string>,
  faults: SchemaFault[],
): RequestBody | undefined {
  if (body === undefined) return undefined;
  let value: JsonValue | undefined;
  if (body.argument !== undefined) {
    used.add(body.argument);
    value = member(args, body.argument);
    if (value === undefined && body.required) faults.push(fault(body.argument, 'required', 'is required'));
  } else {
    const members = Object.keys(args).filter((name) => !used.has(name));
    // Where no parameter takes one of them, the body is the arguments as they stand.
    const rest = used.size === 0 ? args : Object.fromEntries(members.map((name) => [name, args[name] as JsonValue]));
    for (const name of members) used.add(name);
    if (members.length > 0 || body.required || body.writesEmpty === true) value = rest;
  }
  if (value === undefined) return undefined;
  if (body.format === 'json') return { kind: 'json', value };
  if (!isObject(value)) {
    faults.push(fault(body.argument ?? '', 'type', 'must be an object, since it is a form'));
    return undefined;
  }
  return body.format === 'multipart'
    ? { kind: 'multipart', parts: writeFields(body, value, faults, writePart) }
    : { kind: 'form', text: writeFields(body, value, faults, (field, item) => [writeQuery(field, item)]).join('&') };
}

function writeFields<T>(
  body: OperationBody,
  value: JsonObject,
  faults: SchemaFault[],
  write: (field: Styled & { contentType?: string }, item: JsonValue) => T[],
): T[] {
  return Object.entries(value).flatMap(([name, item]) => {
    try {
      return write({ name, ...fieldOf(body, name) }, item);
    } catch (cause) {
      const at = styleFault(name, cause);
      faults.push(body.argument === undefined ? at : { ...at, pointer: `/${escapeToken(body.argument)}${at.pointer}` });
      return [];
    }
  });
}

/** How a field is carried: as the document says, else as one text each, lists repeated. */
export function fieldOf(body: OperationBody, name: string): FormField {
  return body.fields.get(name) ?? UNKNOWN_FIELD;
}

const UNKNOWN_FIELD: FormField = { style: 'form', explode: true, kind: TEXT_KIND };

function writePart(field: Styled & { contentType?: string }, item: JsonValue): BodyPart[] {
  const { name } = field;
  const contentType = field.contentType;
  if (/["\r\n]/.test(name)) throw new StyleError('must not have quotes or line ends in its name');
  const one = (part: JsonValue): BodyPart => {
    const complex = isObject(part) || isArray(part) || field.style === 'json';
    return complex
      ? { name, contentType: contentType ?? 'application/json', text: jsonText(part) }
      : { name, contentType, text: typeof part === 'string' ? part : String(part) };
  };
  if (isArray(item) && field.style !== 'json') {
    if (item.length === 0) throw new StyleError('must not be empty: an empty list cannot be written here');
    return item.map(one);
  }
  return [one(item)];
}
