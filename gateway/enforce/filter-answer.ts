import type { Lookups } from '../../policy/conditions/condition.ts';
import type { Filtered } from '../../policy/conditions/filter.ts';
import { filterToolResult } from '../../policy/conditions/filter-mcp.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import type { Problem, UpstreamAnswer } from '../exchange.ts';
import { renderJson } from '../http/problems.ts';
import type { AnswerFilter } from '../load/conditions.ts';
import type { Loaded } from '../loaded.ts';
import { parseResult } from './read-result.ts';

type Answer = Extract<UpstreamAnswer, { readonly kind: 'answer' }>;

/** An answer as it may be passed on. */
export type FilteredAnswer =
  | { readonly kind: 'passed'; readonly answer: UpstreamAnswer }
  | { readonly kind: 'filtered'; readonly answer: Answer; readonly heldBack: number }
  /** Nobody could tell which records of it may be shown, so none are. */
  | { readonly kind: 'unreadable'; readonly status: number };

/** What a client is told in place of an answer that could not be filtered. */
export const ANSWER_NOT_FILTERED: Problem = {
  status: 502,
  code: 'answer_not_filtered',
  detail:
    'the call was made, and its answer could not be read as the records that its filter judges (too large, not JSON, or of another shape), so nothing of it is shown; ask for less at a time',
};

/** Headers that tell of the body as the upstream sent it. */
const OF_THE_BODY: ReadonlySet<string> = new Set([
  'accept-ranges',
  'content-digest',
  'content-length',
  'content-md5',
  'content-range',
  'digest',
  'etag',
  'repr-digest',
]);

/** Holds back the records of an answer that the tool's filter does not let through. */
export function filterAnswer(loaded: Loaded, toolId: string, answer: UpstreamAnswer, lookups: Lookups): FilteredAnswer {
  const rule = loaded.rules.filters.get(toolId);
  if (rule === undefined || answer.kind !== 'answer') return { kind: 'passed', answer };
  const { status, body } = answer;
  const unreadable = { kind: 'unreadable', status } as const;
  if (!(body instanceof Uint8Array)) {
    body.destroy();
    return unreadable;
  }
  // An HTTP answer of this size was not read; one that came whole all the same is not read either.
  if (body.length > loaded.maxAnswerBytes) return unreadable;
  const isRefusal = status >= 300 || answer.saysFailed === true;
  const value = isEncoded(answer) ? undefined : parseResult(body, headerOf(answer, 'content-type'));
  const filtered = value === undefined ? undefined : apply(rule, value, lookups);
  if (filtered !== undefined) {
    const headers = withoutBodyHeaders(answer.headers);
    const text = filtered.heldBack === 0 && filtered.value === value ? body : Buffer.from(renderJson(filtered.value));
    return { kind: 'filtered', answer: { ...answer, headers, body: text }, heldBack: filtered.heldBack };
  }
  // What the backend says instead of records: nothing, a redirection, an error.
  if (body.length === 0 || isRefusal) return { kind: 'passed', answer };
  return unreadable;
}

function apply(rule: AnswerFilter, value: JsonValue, lookups: Lookups): Filtered | undefined {
  return rule.form === 'json' ? rule.filter(value, lookups) : filterToolResult(rule.filter, value, lookups, renderJson);
}

function withoutBodyHeaders(headers: readonly string[]): readonly string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? '';
    if (!OF_THE_BODY.has(name.toLowerCase())) kept.push(name, headers[at + 1] ?? '');
  }
  return kept;
}

function isEncoded(answer: Answer): boolean {
  const encoding = headerOf(answer, 'content-encoding');
  return encoding !== undefined && encoding.trim().toLowerCase() !== 'identity';
}

function headerOf({ headers }: Answer, name: string): string | undefined {
  for (let at = 0; at + 1 < headers.length; at += 2) {
    if (headers[at]?.toLowerCase() === name) return headers[at + 1];
  }
  return undefined;
}
