/** What became of spans: exported, dropped because too many waited, dropped because the collector did not take them. */
export const SPAN_RESULTS = ['exported', 'queue_full', 'export_failed'] as const;

export type SpanResult = (typeof SPAN_RESULTS)[number];

/** Spans of this process that were sampled and have ended, by what became of them. */
export class SpanCounts {
  readonly #counts: Record<SpanResult, number> = { exported: 0, queue_full: 0, export_failed: 0 };

  add(result: SpanResult, spans: number): void {
    this.#counts[result] += spans;
  }

  of(result: SpanResult): number {
    return this.#counts[result];
  }
}
