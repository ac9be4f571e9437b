import type { Context } from '@opentelemetry/api';
import { TraceFlags } from '@opentelemetry/api';
import type { ReadableSpan, Span, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';
import type { SpanCounts } from './span-counts.ts';

/** As `ExportResultCode.SUCCESS` of the SDK's core. */
const TAKEN = 0;

/**
 * Keeps a collector that is down, slow or hostile from being felt: no more spans wait than the queue holds, none is waited
 * for longer than its time, and every one that is not exported is counted. Both ends of the SDK's batch processor are
 * here, since it says of neither what it drops.
 */
export class BoundedExport {
  readonly #counts: SpanCounts;
  readonly #most: number;
  readonly #timeoutMs: number;
  readonly #onFailure: (why: string, spans: number) => void;
  readonly #onSuccess: () => void;
  #waiting = 0;

  constructor(options: {
    readonly counts: SpanCounts;
    /** Spans that may wait to be handed to the exporter. */
    readonly most: number;
    /** How long the exporter may take over one batch. */
    readonly timeoutMs: number;
    readonly onFailure: (why: string, spans: number) => void;
    readonly onSuccess: () => void;
  }) {
    this.#counts = options.counts;
    this.#most = options.most;
    this.#timeoutMs = options.timeoutMs;
    this.#onFailure = options.onFailure;
    this.#onSuccess = options.onSuccess;
  }

  /** What spans come to; `inner` holds them until there is a batch. */
  processor(inner: SpanProcessor): SpanProcessor {
    return {
      onStart: (span: Span, parent: Context) => inner.onStart(span, parent),
      onEnd: (span: ReadableSpan) => {
        if ((span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0) return;
        if (this.#waiting >= this.#most) {
          this.#drop('queue_full', 1);
          return;
        }
        this.#waiting += 1;
        inner.onEnd(span);
      },
      forceFlush: () => inner.forceFlush(),
      shutdown: () => inner.shutdown(),
    };
  }

  /** Where batches go; `inner` sends them. Whatever comes of one is accounted for here, so the processor is told no more. */
  exporter(inner: SpanExporter): SpanExporter {
    return {
      export: (spans, done) => {
        this.#waiting -= spans.length;
        let open = true;
        const end = (why: string | undefined): void => {
          if (!open) return;
          open = false;
          clearTimeout(timer);
          if (why === undefined) {
            this.#counts.add('exported', spans.length);
            this.#onSuccess();
          } else {
            this.#counts.add('export_failed', spans.length);
            this.#onFailure(why, spans.length);
          }
          done({ code: TAKEN });
        };
        const timer = setTimeout(() => end('timeout'), this.#timeoutMs);
        timer.unref();
        try {
          inner.export(spans, ({ code, error }) => end(code === TAKEN ? undefined : whyOf(error)));
        } catch (error) {
          end(whyOf(error));
        }
      },
      forceFlush: () => inner.forceFlush?.() ?? Promise.resolve(),
      shutdown: () => inner.shutdown(),
    };
  }

  #drop(why: 'queue_full', spans: number): void {
    this.#counts.add(why, spans);
    this.#onFailure(why, spans);
  }
}

/** The status or the code of a failed export: what a collector says in words is not for the log. */
export function whyOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (typeof code === 'number') return `status_${code}`;
  return typeof code === 'string' && /^[A-Z0-9_]{1,60}$/.test(code) ? code : 'no_answer';
}
