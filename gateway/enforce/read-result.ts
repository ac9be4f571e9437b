import type { Tool } from '../../policy/tool.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { resultDigest } from '../../receipts/digest.ts';
import { parseJson } from '../../receipts/json.ts';
import { JsonFault } from '../../receipts/json-fault.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { Gateway } from '../gateway.ts';
import type { StepReport } from '../session-reports.ts';
import type { Session } from '../sessions.ts';
import { digestedPart, factsOf } from './result-facts.ts';
import { fieldDigest } from './step-facts.ts';
import { completeUndo } from './undo-arguments.ts';

/** What of a result is kept. */
export type ReadResult = Pick<StepReport, 'result' | 'fields' | 'undoArguments'>;

/** Digest of a result, keyed digests of its declared fields, and what the undo of its step binds. */
export function readResult(
  gateway: Gateway,
  session: Session,
  of: { readonly step: number; readonly tool: Tool; readonly boundArguments: JsonObject },
  answer: JsonValue,
): ReadResult {
  const { step, tool } = of;
  const { sid } = session.record;
  const value = factsOf(gateway.loaded, tool.server, answer);
  const undo = completeUndo(tool, of.boundArguments, value);
  const fields: Record<string, string> = {};
  for (const [path, field] of declaredFields(tool, value)) fields[path] = fieldDigest(gateway, sid, step, path, field);
  return {
    result: resultDigest(
      gateway.crypto,
      session.nonce,
      canonicalize(digestedPart(gateway.loaded, tool.server, answer)),
    ),
    fields,
    ...(undo === undefined ? {} : { undoArguments: canonicalize(undo) }),
  };
}
/** A body as JSON under the strict profile; `undefined` where it is not that, and is then taken as bytes. */
export function parseResult(body: Uint8Array, contentType: string | undefined): JsonValue | undefined {
  if (contentType === undefined || !/^application\/(?:[\w.-]+\+)?json\b/i.test(contentType)) return undefined;
  try {
    return parseJson(body);
  } catch (error) {
    if (error instanceof JsonFault) return undefined;
    throw error;
  }
}

const MAX_FIELDS = 64;
const MAX_FIELD_DEPTH = 4;

/** The members of a result that are kept as digests, by dotted path. */
function* declaredFields(tool: Tool, value: JsonValue): Generator<readonly [string, JsonValue]> {
  if (tool.result === undefined && tool.watched.length === 0) return;
  let left = MAX_FIELDS;
  const waiting: { readonly path: string; readonly value: JsonValue; readonly depth: number }[] = [
    { path: '', value, depth: 0 },
  ];
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    if (typeof next.value !== 'object' || next.value === null || Array.isArray(next.value)) continue;
    for (const [name, member] of Object.entries(next.value)) {
      const path = next.path === '' ? name : `${next.path}.${name}`;
      if (!isKept(tool, path)) continue;
      if (left-- === 0) return;
      yield [path, member];
      if (next.depth < MAX_FIELD_DEPTH) waiting.push({ path, value: member, depth: next.depth + 1 });
    }
  }
}

/** What the result schema declares, and what rules of the config name: an order rule may bind a field that no schema declares. */
function isKept(tool: Tool, path: string): boolean {
  return (
    tool.result?.declares(path) === true || tool.watched.some((name) => name === path || name.startsWith(`${path}.`))
  );
}
