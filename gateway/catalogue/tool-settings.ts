import type { Config } from '../config/config.ts';
import type { ConfigPath } from '../config/problem.ts';
import type { RawCondition, RawFilter, RawLimit, RawOutcome, RawSpend } from '../config/raw.ts';
import { parseDurationMs } from '../config/units.ts';
import { checkConditions } from './conditions.ts';
import type { ResultField } from './names.ts';
import { checkArgument, checkPath, type Drafts, resolveTool, type ToolDraft, watchField } from './tool-draft.ts';
import type { SourceOperation } from './tool-source.ts';

/** What the configuration says of a tool beside what the check reads (`Tool`): how it is sent, limited, read. */
export interface ToolSettings {
  readonly id: string;
  readonly operation?: SourceOperation;
  /** Total time of one call; absent: the route's. */
  readonly timeoutMs?: number;
  /** How often it is sent again at most, where that is safe. */
  readonly retryAttempts: number;
  /** A caller's write must bring an idempotency key. */
  readonly idempotencyRequired: boolean;
  /** Answers that say that nothing was done; absent: the default of docs/configuration.md. */
  readonly failedWhen?: readonly (number | '4xx' | '5xx' | RawCondition)[];
  /** As written, their form and names checked. */
  readonly checks: readonly RawCondition[];
  /** Limits per period. A bare `at_most: N` is the tool's `atMost`, not here. */
  readonly limits: readonly RawLimit[];
  readonly spend: readonly RawSpend[];
  readonly currency?: string;
  readonly filter?: RawFilter;
  /** `follow` is a pair. */
  readonly outcome?: RawOutcome;
  /** What each `from: tool.field` of the tool's conditions means. */
  readonly references: ReadonlyMap<string, ResultField>;
  /** Where a word stands in the configuration. */
  readonly pathOf: ToolDraft['words']['pathOf'];
}

/** The settings of a tool. Faults: words that clash with one another, with the tool, or with the schemas. */
export function readToolSettings(config: Config, drafts: Drafts, draft: ToolDraft): ToolSettings {
  const { said, pathOf } = draft.words;
  const references = new Map<string, ResultField>();
  checkConditions(drafts, draft, said.checks ?? [], pathOf('checks'), 'arguments', references);
  for (const [index, item] of (said.failed_when ?? []).entries()) {
    if (typeof item === 'object')
      checkConditions(drafts, draft, [item], [...pathOf('failed_when'), index], 'answer', references);
  }
  readFilter(drafts, draft, references);
  const limits = readLimits(drafts, draft);
  checkSpend(drafts, draft);
  const outcome = readOutcome(drafts, draft, references);
  const carrier = typeof said.idempotency === 'object' ? said.idempotency : undefined;
  const required = said.idempotency === 'required' ? true : carrier?.required;
  return {
    id: draft.id,
    ...(draft.source.operation === undefined ? {} : { operation: draft.source.operation }),
    ...(said.timeout === undefined ? {} : { timeoutMs: parseDurationMs(said.timeout) }),
    retryAttempts: said.retry?.attempts ?? config.retry.attempts,
    idempotencyRequired: draft.writes && (required ?? draft.route.idempotencyRequired),
    ...(said.failed_when === undefined ? {} : { failedWhen: said.failed_when }),
    checks: said.checks ?? [],
    limits,
    spend: said.spend ?? [],
    ...(said.currency === undefined ? {} : { currency: said.currency }),
    ...(said.filter === undefined ? {} : { filter: said.filter }),
    ...(outcome === undefined ? {} : { outcome }),
    references,
    pathOf,
  };
}

function readFilter(drafts: Drafts, draft: ToolDraft, references: Map<string, ResultField>): void {
  const { said, pathOf } = draft.words;
  if (said.filter === undefined) return;
  const path = pathOf('filter');
  if (draft.writes)
    drafts.log.error('filter_on_write', path, `\`${draft.id}\` writes: its answer cannot be filtered`, 'key');
  if (!checkPath(drafts, said.filter.each, [...path, 'each'])) return;
  if (!said.filter.each.includes('[]')) {
    drafts.log.error(
      'condition_form',
      [...path, 'each'],
      `\`${said.filter.each}\` names no list; write \`${said.filter.each}[]\``,
    );
  }
  checkConditions(drafts, draft, said.filter.keep, [...path, 'keep'], 'record', references);
}

function readLimits(drafts: Drafts, draft: ToolDraft): readonly RawLimit[] {
  const said = draft.words.said.at_most;
  if (said === undefined || typeof said === 'number') return [];
  const limits = [said].flat();
  const periods = new Set<string>();
  for (const [index, { per }] of limits.entries()) {
    if (periods.has(per)) {
      drafts.log.error(
        'duplicate_name',
        [...draft.words.pathOf('at_most'), index, 'per'],
        `there are two counts per \`${per}\``,
      );
    }
    periods.add(per);
  }
  return limits;
}

function checkSpend(drafts: Drafts, draft: ToolDraft): void {
  const { said, pathOf } = draft.words;
  if (said.spend === undefined) {
    if (said.currency !== undefined && draft.words.isExact('currency')) {
      drafts.log.warning(
        'word_without_effect',
        pathOf('currency'),
        '`currency` says something only beside `spend`',
        'key',
      );
    }
    return;
  }
  const path = pathOf('spend');
  if (said.currency === undefined) {
    drafts.log.error(
      'spend_without_currency',
      path,
      `\`${draft.id}\` has a \`spend\` and no \`currency\`; say what is spent, such as \`currency: EUR\``,
      'key',
    );
  }
  const limits = new Set<string>();
  for (const [index, { field, per, pool }] of said.spend.entries()) {
    if (checkPath(drafts, field, [...path, index, 'field']))
      checkArgument(drafts, draft, field, [...path, index, 'field']);
    const key = JSON.stringify([field, per, pool ?? null]);
    if (limits.has(key))
      drafts.log.error('duplicate_name', [...path, index], `there are two limits of \`${field}\` per \`${per}\``);
    limits.add(key);
  }
}

function readOutcome(drafts: Drafts, draft: ToolDraft, references: Map<string, ResultField>): RawOutcome | undefined {
  const { said, pathOf } = draft.words;
  const outcome = said.outcome;
  if (outcome === undefined) return undefined;
  const path = pathOf('outcome');
  if (!draft.writes)
    drafts.log.error('outcome_of_read', path, `\`${draft.id}\` only reads: there is no outcome to follow`, 'key');
  const follow = resolveTool(drafts, outcome.follow, draft.route.name, [...path, 'follow']);
  const read = follow === undefined ? undefined : drafts.byId.get(follow);
  for (const word of ['done_when', 'failed_when'] as const) {
    checkConditions(drafts, draft, outcome[word] ?? [], [...path, word], 'answer', references);
  }
  if (follow === undefined || read === undefined) return undefined;
  if (read.writes)
    drafts.log.error('follow_writes', [...path, 'follow'], `\`${follow}\` writes; a write is followed by a read`);
  checkSame(drafts, draft, read, outcome.same, [...path, 'same']);
  return { ...outcome, follow };
}

function checkSame(drafts: Drafts, draft: ToolDraft, read: ToolDraft, same: string, path: ConfigPath): void {
  checkArgument(drafts, read, same, path);
  if (!draft.input.topLevel.includes(same)) watchField(drafts, draft, same, path);
}
