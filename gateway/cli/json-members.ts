import { isArray, type JsonValue } from '../../receipts/json-value.ts';
import { renderJson } from '../http/problems.ts';

/** A member of a gateway's answer as text: a string as it is, anything else as JSON, what is absent as nothing. */
export function textOf(value: JsonValue | undefined): string {
  return value === undefined || value === null ? '' : typeof value === 'string' ? value : renderJson(value);
}

/** A member that should be a list; an empty one where it is not. */
export function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return value !== undefined && isArray(value) ? value : [];
}

/** A moment in milliseconds as RFC 3339, or nothing where the member is none. */
export function timeOf(value: JsonValue | undefined): string {
  return typeof value === 'number' && Math.abs(value) <= 8.64e15 ? new Date(value).toISOString() : '';
}
