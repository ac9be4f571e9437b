import { compileConditions } from '../../policy/conditions/compile.ts';
import type { CompiledConditions, Lookups } from '../../policy/conditions/condition.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import type { BuiltCatalogue } from '../catalogue/build.ts';
import type { ToolSettings } from '../catalogue/tool-settings.ts';

/** What a tool's `failed_when` says of its backend's answers. */
export interface FailedWhen {
  /** Whether a status alone says that nothing was done. */
  readonly status: (status: number) => boolean;
  /** Whether an answer does; absent where no condition is on answers. */
  readonly answer?: (value: JsonValue, lookups: Lookups) => boolean;
}

/** Statuses from 400 to 499 that do not say that nothing was done. */
const UNCLEAR_STATUSES: ReadonlySet<number> = new Set([408, 409, 425, 429]);

/** The default of docs/configuration.md, `failed_when`. */
export const FAILED_BY_DEFAULT: FailedWhen = {
  status: (status) => status >= 400 && status < 500 && !UNCLEAR_STATUSES.has(status),
};

/** The tools that say otherwise than the default, compiled once. */
export function readFailedWhen(built: BuiltCatalogue): ReadonlyMap<string, FailedWhen> {
  const said = new Map<string, FailedWhen>();
  for (const settings of built.settings.values()) {
    if (settings.failedWhen !== undefined) said.set(settings.id, compile(settings, settings.failedWhen));
  }
  return said;
}

function compile(settings: ToolSettings, items: NonNullable<ToolSettings['failedWhen']>): FailedWhen {
  const statuses = new Set<number>();
  const classes = new Set<number>();
  const conditions: CompiledConditions[] = [];
  for (const item of items) {
    if (typeof item === 'number') statuses.add(item);
    else if (typeof item === 'string') classes.add(item === '4xx' ? 4 : 5);
    else conditions.push(compileConditions([item], (from) => settings.references.get(from)));
  }
  const status = (code: number): boolean => statuses.has(code) || classes.has(Math.floor(code / 100));
  if (conditions.length === 0) return { status };
  // A value that an answer does not have is no sign of failure: the answer of a call that ran has no `error.code`.
  const answer = (value: JsonValue, lookups: Lookups): boolean =>
    conditions.some((condition) => condition.judge(value, lookups).verdict === 'holds');
  return { status, answer };
}
