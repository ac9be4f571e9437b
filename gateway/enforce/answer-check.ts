import { reasonOf } from '../../policy/reasons.ts';
import type { Verdict } from '../../policy/verdict.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import type { ToolCheck } from '../exchange.ts';
import type { ReadCall } from './read-call.ts';

/** What of an answer depends on where it was recorded. */
export interface Recorded {
  readonly session: string;
  readonly step: number;
  readonly entry?: JsonObject;
  readonly history?: JsonObject;
  readonly confirmation?: NonNullable<ToolCheck['confirmation']>;
  readonly idempotencyKey?: string;
}

/** The qls-tool-check/1 answer of a verdict (docs/api.md). */
export function renderCheck(read: Pick<ReadCall, 'call'>, verdict: Verdict, recorded: Recorded): ToolCheck {
  const { reasons, pointer } = verdict;
  const { entry, history, confirmation, idempotencyKey } = recorded;
  return {
    format: 'qls-tool-check/1',
    decision: verdict.decision,
    reason: reasons[0] ?? 'internal_error',
    reasons,
    ...(pointer === undefined ? {} : { pointer }),
    detail: verdict.detail ?? {},
    sentence: sentenceOf(read, verdict),
    tool: verdict.tool?.id ?? read.call.tool,
    agent: verdict.agent,
    session: recorded.session,
    step: recorded.step,
    ...(entry === undefined ? {} : { entry }),
    ...(history === undefined ? {} : { history }),
    ...(idempotencyKey === undefined ? {} : { idempotency_key: idempotencyKey }),
    ...(confirmation === undefined ? {} : { confirmation }),
  };
}

/** One sentence for whoever reads the answer: for a confirm all that a person must see, else what is wrong and what to do. */
function sentenceOf(read: Pick<ReadCall, 'call'>, verdict: Verdict): string {
  const { detail, reasons } = verdict;
  const tool = verdict.tool?.id ?? read.call.tool;
  if (verdict.decision === 'confirm') {
    const shown = asObjects(detail?.['arguments']).map(
      ({ name, value, origin }) => `${asText(name)} = ${canonicalize(value ?? null)} (${asText(origin)})`,
    );
    const why = asTexts(detail?.['sentences']).join('; ');
    return `approve \`${tool}\` with ${shown.length === 0 ? 'no arguments' : shown.join(', ')}? ${why}`;
  }
  const told = reasons.map((reason) => reasonOf(reason).sentence).join('; ');
  const because = detail?.['because'];
  return `\`${tool}\`: ${told}${typeof because === 'string' ? `: ${because}` : ''}`;
}

function asObjects(value: JsonValue | undefined): readonly JsonObject[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isObject);
}

function asTexts(value: JsonValue | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
}

function asText(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}
