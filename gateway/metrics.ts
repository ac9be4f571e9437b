import { type Aggregator, Counter, collectDefaultMetrics, Gauge, type Metric, Registry } from 'prom-client';
import { REASONS, type ReasonCode } from '../policy/reasons.ts';
import type { Decision } from '../receipts/history.ts';
import type { AuditLag } from './audit/options.ts';
import type { CallOutcome } from './exchange.ts';
import { QuickHistogram } from './quick-histogram.ts';
import type { ClaimState, OpenCount, UndoState } from './store/port.ts';
import { TallyTable } from './tally.ts';
import type { SpanCounts } from './tracing/span-counts.ts';
import { exposeSpans } from './tracing/span-metrics.ts';

/** Where gauges are read from when Prometheus asks; each may be absent while its part is not running. */
export interface MetricSources {
  readonly storeCounts?: () => Promise<readonly OpenCount[]>;
  readonly storeIsUp?: () => boolean;
  readonly auditLag?: () => AuditLag;
  /** Live sessions in memory. */
  readonly sessions?: () => number;
  readonly spans?: SpanCounts | undefined;
  /** The metrics of all workers, where this process is one of several: whoever asks one asks all. */
  readonly ofAllWorkers?: () => Promise<string>;
}

/** Seconds: a check is microseconds, a commit milliseconds, an upstream anything. */
const CHECK_BUCKETS = [0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05];
const STORE_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const UPSTREAM_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** The states that somebody waits in; what is settled is history, and counting it would be a walk through the store. */
const CLAIM_STATES: readonly ClaimState[] = ['claimed', 'sending', 'outcome_unknown'];
const UNDO_STATES: readonly UndoState[] = ['undo_pending', 'undoing', 'undo_unknown', 'needs_person'];
const DECISIONS: readonly Decision[] = ['allow', 'confirm', 'refuse'];
const OUTCOMES: readonly CallOutcome[] = ['ran', 'failed', 'outcome_unknown'];
const CODES = Object.keys(REASONS) as readonly ReasonCode[];

/** Label of what the catalogue lacks: callers choose the names that they ask for, and must not choose how many series there are. */
const OTHER_TOOL = 'other';
const PROBLEM_CODES_MAX = 100;

/**
 * The gateway's metrics in the Prometheus text format. Counting a call adds to numbers in memory; what labels they have
 * is worked out when Prometheus asks. No label holds what a caller may choose freely.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #decisions = new TallyTable(['tool', 'decision', 'reason'], [DECISIONS, CODES]);
  readonly #outcomes = new TallyTable(['tool', 'outcome'], [OUTCOMES]);
  readonly #check = new QuickHistogram('toolgate_check_seconds', 'Time that the check of a call took.', CHECK_BUCKETS);
  readonly #store = new QuickHistogram(
    'toolgate_store_seconds',
    'Time that a commit of the store took.',
    STORE_BUCKETS,
  );
  readonly #upstream = new QuickHistogram(
    'toolgate_upstream_seconds',
    'Time that a call waited for its upstream.',
    UPSTREAM_BUCKETS,
  );
  readonly #config: ConfigMetrics;
  readonly #problems: Counter<'problem'>;
  readonly #passed: Counter<'route' | 'path'>;
  readonly #problemCodes = new Set<string>();
  readonly #refresh: readonly Refresh[];
  readonly #ofAllWorkers: (() => Promise<string>) | undefined;
  #tools: ReadonlySet<string> = new Set();

  constructor(sources: MetricSources = {}) {
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry });
    this.#decisions.expose('toolgate_decisions_total', 'Calls decided, by tool, decision and reason.', registers);
    this.#outcomes.expose('toolgate_outcomes_total', 'Outcomes of calls that the gateway forwarded.', registers);
    for (const histogram of [this.#check, this.#store, this.#upstream])
      this.#registry.registerMetric(histogram as unknown as Metric);
    this.#ofAllWorkers = sources.ofAllWorkers;
    this.#problems = new Counter({
      name: 'toolgate_problems_total',
      help: 'Requests answered with a problem and not decided.',
      labelNames: ['problem'],
      registers,
    });
    this.#passed = new Counter({
      name: 'toolgate_passed_total',
      help: 'Requests let through unchecked, by route and path of its `pass`.',
      labelNames: ['route', 'path'],
      registers,
    });
    this.#config = new ConfigMetrics(this.#registry);
    this.#refresh = [exposeStore(registers, sources), exposeAudit(registers, sources)];
    exposeSpans(registers, sources.spans);
  }

  /** The tools that have a label of their own; all others are counted as one. Called when a configuration is taken. */
  setTools(ids: Iterable<string>): void {
    this.#tools = new Set(ids);
  }

  /** A call was decided; `code` is that of its first reason. */
  decided(tool: string | undefined, decision: Decision, code: ReasonCode): void {
    this.#decisions.add(this.#label(tool), DECISIONS.indexOf(decision) * CODES.length + CODE_INDEX[code]);
  }

  /** The outcome of a forwarded call is known. */
  settled(tool: string | undefined, outcome: CallOutcome): void {
    this.#outcomes.add(this.#label(tool), OUTCOMES.indexOf(outcome));
  }

  /** Milliseconds of each part of a call. */
  checkTook(ms: number): void {
    this.#check.observe(ms / 1000);
  }

  storeTook(ms: number): void {
    this.#store.observe(ms / 1000);
  }

  upstreamTook(ms: number): void {
    this.#upstream.observe(ms / 1000);
  }

  /** A request was answered with a problem; `code` stands behind `urn:toolgate:`. */
  problem(code: string): void {
    const known = this.#problemCodes.has(code) || this.#problemCodes.size < PROBLEM_CODES_MAX;
    if (known) this.#problemCodes.add(code);
    this.#problems.inc({ problem: known ? code : 'other' });
  }

  /** A request went through unchecked, on a path of the configuration. */
  passed(route: string, path: string): void {
    this.#passed.inc({ route, path });
  }

  configTaken(nowMs: number): void {
    this.#config.taken(nowMs);
  }

  configRefused(): void {
    this.#config.refused();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** The body of `GET /metrics`. */
  async render(): Promise<string> {
    if (this.#ofAllWorkers !== undefined) return this.#ofAllWorkers();
    for (const refresh of this.#refresh) await refresh();
    return this.#registry.metrics();
  }

  /** The metrics of this process alone, for its primary to put together with those of the other workers. */
  async ownAsJson(): Promise<readonly object[]> {
    for (const refresh of this.#refresh) await refresh();
    return this.#registry.getMetricsAsJSON();
  }

  #label(tool: string | undefined): string {
    return tool !== undefined && this.#tools.has(tool) ? tool : OTHER_TOOL;
  }
}

/** What is to be known of the configuration: a primary counts it for its workers, so that one reload is one. */
export class ConfigMetrics {
  readonly #reloads: Counter<'result'>;
  readonly #loadedAt: Gauge;

  constructor(registry: Registry) {
    this.#reloads = new Counter({
      name: 'toolgate_config_reloads_total',
      help: 'Times that a configuration was taken or refused.',
      labelNames: ['result'],
      registers: [registry],
    });
    for (const result of ['taken', 'refused']) this.#reloads.inc({ result }, 0);
    this.#loadedAt = new Gauge({
      name: 'toolgate_config_loaded_timestamp_seconds',
      help: 'When the configuration in force was taken.',
      registers: [registry],
    });
  }

  taken(nowMs: number): void {
    this.#reloads.inc({ result: 'taken' });
    this.#loadedAt.set(nowMs / 1000);
  }

  refused(): void {
    this.#reloads.inc({ result: 'refused' });
  }
}

const CODE_INDEX: Readonly<Record<ReasonCode, number>> = Object.fromEntries(
  CODES.map((code, i) => [code, i]),
) as Readonly<Record<ReasonCode, number>>;

/** What brings gauges up to date before they are read: they are read in any order, and some come from one question. */
type Refresh = () => void | Promise<void>;

function exposeStore(registers: readonly Registry[], sources: MetricSources): Refresh {
  // What stands in the store is the same for every worker, so theirs are not added up.
  const gauge = <L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[] = [],
    aggregator: Aggregator = 'max',
  ): Gauge<L> => new Gauge<L>({ name, help, labelNames, aggregator, registers: [...registers] });
  const up = gauge('toolgate_store_up', '1 while the store takes commits.', [], 'min');
  const sessions = gauge('toolgate_sessions', 'Sessions that this process has in memory.', [], 'sum');
  const claims = gauge('toolgate_claims', 'Calls that are not settled, by state.', ['state']);
  const unknown = gauge('toolgate_unknown_outcomes', 'Calls of which nobody knows whether they ran.');
  const undos = gauge('toolgate_undos', 'Steps of failed runs that are not undone yet, by the state of their undo.', [
    'state',
  ]);
  const held = gauge('toolgate_held_confirmations', 'Calls that wait for an approver.');
  const age = gauge(
    'toolgate_store_counts_age_seconds',
    'How long ago the store could last be counted; the counts of claims, undos and confirmations are as old.',
  );
  let countedAtMs = performance.now();
  return async () => {
    if (sources.storeIsUp !== undefined) up.set(sources.storeIsUp() ? 1 : 0);
    if (sources.sessions !== undefined) sessions.set(sources.sessions());
    // A store that cannot be asked must not take the other metrics with it: its counts stay, and their age tells.
    const counts = await sources.storeCounts?.().catch(() => undefined);
    if (counts !== undefined) {
      countedAtMs = performance.now();
      const count = (what: OpenCount['what'], state: string): number =>
        counts.find((row) => row.what === what && row.state === state)?.count ?? 0;
      for (const state of CLAIM_STATES) claims.set({ state }, count('claim', state));
      unknown.set(count('claim', 'outcome_unknown'));
      for (const state of UNDO_STATES) undos.set({ state }, count('undo', state));
      held.set(count('confirmation', 'held'));
    }
    age.set((performance.now() - countedAtMs) / 1000);
  };
}

function exposeAudit(registers: readonly Registry[], sources: MetricSources): Refresh {
  const gauge = (name: string, help: string, aggregator: Aggregator = 'sum'): Gauge =>
    new Gauge({ name, help, aggregator, registers: [...registers] });
  const unsigned = gauge('toolgate_audit_unsigned_lines', 'Audit lines that no checkpoint covers yet.');
  const waiting = gauge('toolgate_audit_waiting_lines', 'Audit lines that wait to be written.');
  const down = gauge('toolgate_audit_down_seconds', 'How long the audit log cannot be written; 0 while it can.', 'max');
  return () => {
    const lag = sources.auditLag?.();
    if (lag === undefined) return;
    unsigned.set(lag.unsigned);
    waiting.set(lag.waiting);
    down.set(lag.downSinceMs === undefined ? 0 : Math.max(0, Date.now() - lag.downSinceMs) / 1000);
  };
}
