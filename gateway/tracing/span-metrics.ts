import { Counter, type Registry } from 'prom-client';
import { SPAN_RESULTS, type SpanCounts } from './span-counts.ts';

/** Shows what became of spans, also where none are made: an alert needs the zero. */
export function exposeSpans(registers: Registry[], spans: SpanCounts | undefined): void {
  new Counter({
    name: 'toolgate_trace_spans_total',
    help: 'Spans that ended and were sampled, by what became of them.',
    labelNames: ['result'],
    registers,
    collect(): void {
      this.reset();
      for (const result of SPAN_RESULTS) this.inc({ result }, spans?.of(result) ?? 0);
    },
  });
}
