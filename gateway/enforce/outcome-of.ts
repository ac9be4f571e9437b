import type { CallOutcome, UpstreamAnswer } from '../exchange.ts';
import { FAILED_BY_DEFAULT } from '../load/failed-when.ts';
import type { Allowed } from './allowed.ts';
import { parseResult } from './read-result.ts';
import { factsOf } from './result-facts.ts';

/** What an answer says of the call (docs/execution.md, "States of a call"). A stream is judged by its head; its end may still change that. */
export function outcomeOfAnswer(
  allowed: Pick<Allowed, 'read' | 'tool' | 'answers'>,
  answer: UpstreamAnswer,
): CallOutcome {
  if (answer.kind === 'not_sent') return 'failed';
  if (answer.kind === 'unclear') return 'outcome_unknown';
  if (answer.saysFailed !== undefined) return answer.saysFailed ? 'failed' : 'ran';
  const { read, tool } = allowed;
  const rule = read.loaded.failedWhen.get(tool.id) ?? FAILED_BY_DEFAULT;
  const { status, body } = answer;
  if (rule.status(status)) return 'failed';
  if (rule.answer !== undefined) {
    // What conditions stand on was not read: nobody can tell.
    if (!(body instanceof Uint8Array)) return 'outcome_unknown';
    const value = body.length === 0 ? undefined : parseResult(body, headerOf(answer.headers, 'content-type'));
    const lookups = { arguments: read.call.arguments, answers: allowed.answers ?? [] };
    if (value !== undefined && rule.answer(factsOf(read.loaded, tool.server, value), lookups)) return 'failed';
  }
  return status < 400 ? 'ran' : 'outcome_unknown';
}

/** A header's value; `undefined` where the answer has none. */
export function headerOf(headers: readonly string[], name: string): string | undefined {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]?.toLowerCase() === name) return headers[i + 1];
  }
  return undefined;
}
