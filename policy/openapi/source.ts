import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { member } from '../schema/dialect.ts';
import type { SchemaDocument, Scope } from '../schema/document.ts';
import { ApiError } from './api.ts';

/** An object of the document with the file that it stands in. */
export interface Located {
  readonly value: JsonObject;
  readonly scope: Scope;
}

const MAX_REFERENCES = 32;

/**
 * Follows `$ref` until an object that is none. Undefined for what is no object or leads nowhere; members beside a `$ref`
 * are not merged in, except by those who read them themselves (path items).
 */
export function follow(document: SchemaDocument, value: JsonValue | undefined, scope: Scope): Located | undefined {
  let at: { value: JsonValue | undefined; scope: Scope } = { value, scope };
  for (let i = 0; i < MAX_REFERENCES; i++) {
    if (!isObject(at.value)) return undefined;
    const reference = member(at.value, '$ref');
    if (typeof reference !== 'string') return { value: at.value, scope: at.scope };
    const target = document.resolve(reference, at.scope);
    if (target === undefined) return undefined;
    at = { value: target.schema, scope: target.scope };
  }
  return undefined;
}

/** A text member, or undefined. */
export function textOf(object: JsonObject, key: string): string | undefined {
  const value = member(object, key);
  return typeof value === 'string' ? value : undefined;
}

/** An object member, or undefined. */
export function objectOf(object: JsonObject, key: string): JsonObject | undefined {
  const value = member(object, key);
  return isObject(value) ? value : undefined;
}

/** An array member, or an empty one. */
export function listOf(object: JsonObject, key: string): readonly JsonValue[] {
  const value = member(object, key);
  return Array.isArray(value) ? value : [];
}

/** The version of a document: Swagger 2.0, OpenAPI 3.0 to 3.2. Throws `ApiError` for any other. */
export function versionOf(root: JsonObject): '2.0' | '3.0' | '3.1' | '3.2' {
  if (member(root, 'swagger') === '2.0') return '2.0';
  const version = /^3\.[0-2](?=\.|$)/.exec(String(member(root, 'openapi') ?? ''))?.[0];
  if (version === '3.0' || version === '3.1' || version === '3.2') return version;
  throw new ApiError(
    'api_invalid',
    'the document must say `swagger: "2.0"` or `openapi: 3.0`, `3.1` or `3.2`; others are not read',
  );
}

/** Headers that no parameter may set: they belong to the connection, the credential or the message itself. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'host',
  'cookie',
  'set-cookie',
  'accept',
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'forwarded',
  'via',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-http-method-overide',
  // The key of a call is the gateway's to make, so that no caller can take another's.
  'idempotency-key',
  'traceparent',
  'tracestate',
]);

/** Whether a header may not be a parameter. */
export function isReservedHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return (
    RESERVED_HEADERS.has(lower) ||
    lower.startsWith('content-') ||
    lower.startsWith('x-forwarded-') ||
    lower.startsWith('toolgate-') ||
    !/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(lower)
  );
}
