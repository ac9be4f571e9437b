import { isArray, isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import type { Routable } from '../route-template.ts';
import type { Router } from '../routing.ts';
import { member } from '../schema/dialect.ts';
import type { SchemaFault } from '../schema/walk.ts';
import { normalisePath } from '../target.ts';
import type { Operation } from './operation.ts';
import { readRequest } from './reading.ts';
import { type BuiltRequest, type Carried, fault, writeRequest } from './request.ts';
import { writeScalar } from './scalar.ts';

/**
 * Makes the request of a call whose arguments passed the schema. What cannot be carried is a fault with the pointer of
 * its argument: a slash in a path argument, an empty list in a query, a delimiter inside a value whose style has no way
 * to write it, an argument that nothing carries. The request is read back before it is given out, so that what a backend
 * reads is what was checked. `parseJson` reads JSON texts inside parameters.
 */
export function buildRequest(
  operation: Operation,
  args: JsonObject,
  parseJson: (text: string) => JsonValue,
): Carried<BuiltRequest> {
  const written = writeRequest(operation, args);
  if (!written.ok) return written;
  const { rawParameters, ...request } = written.value;
  // A body of JSON that is the arguments themselves reads back as them.
  if (request.body?.kind === 'json' && request.body.value === args) return { ok: true, value: request };
  const headers = new Map(request.headers);
  const back = readRequest(operation, {
    rawParameters,
    rawQuery: request.rawQuery,
    header: (name) => {
      const value = headers.get(name);
      return value === undefined ? [] : [value];
    },
    body: request.body,
    parseJson,
  });
  if (!back.ok) return back;
  const faults: SchemaFault[] = [];
  for (const name of new Set([...Object.keys(args), ...Object.keys(back.value)])) {
    if (!sameTexts(member(args, name), member(back.value, name))) {
      faults.push(fault(name, 'style', 'cannot be written into the request without being read as another value'));
    }
  }
  return faults.length > 0 ? { ok: false, faults } : { ok: true, value: request };
}

/** Whether a built path leads back to its own operation: another, more concrete one might take it (`/users/me`). */
export function routesBack<T extends Routable>(router: Router<T>, operation: T, rawPath: string): boolean {
  const path = normalisePath(rawPath, { matrix: true });
  if (!path.ok) return false;
  const match = router.match(operation.method, path.segments);
  return match.kind === 'match' && match.operation === operation;
}

/**
 * Equal as far as a request can tell: `5` and `"5"`, or `5` and `[5]`, are one text where the schema lets both in, and it
 * has said which of them is meant.
 */
function sameTexts(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (isArray(a) && !isArray(b)) return a.length === 1 && !isArray(a[0]) && sameTexts(a[0], b);
  if (isArray(a) || isArray(b)) {
    return isArray(a) && isArray(b) && a.length === b.length && a.every((item, i) => sameTexts(item, b[i]));
  }
  if (isObject(a) || isObject(b)) {
    if (!isObject(a) || !isObject(b)) return false;
    const names = Object.keys(a);
    return names.length === Object.keys(b).length && names.every((name) => sameTexts(a[name], member(b, name)));
  }
  return writeScalar(a) === writeScalar(b);
}
