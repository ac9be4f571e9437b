import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import type { SpanExporter } from '@opentelemetry/sdk-trace';

/** Batches that may be under way at once: those of a full queue when the process ends, and some that a collector holds on to. */
const MOST_UNDER_WAY = 8;

/**
 * Sends spans by OTLP over HTTP. Headers, certificates, compression and, where none is given here, the timeout are the
 * library's to read from `OTEL_EXPORTER_OTLP_*`.
 */
export function makeExporter(url: string, timeoutMillis?: number): SpanExporter {
  return new OTLPTraceExporter({
    url,
    concurrencyLimit: MOST_UNDER_WAY,
    ...(timeoutMillis === undefined ? {} : { timeoutMillis }),
  });
}
