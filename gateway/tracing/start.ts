import { DiagLogLevel, diag } from '@opentelemetry/api';
import {
  defaultResource,
  detectResources,
  type Resource,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Log } from '../log.ts';
import { BoundedExport } from './bounded-export.ts';
import { makeExporter } from './exporter.ts';
import { SdkTracing } from './sdk-tracing.ts';
import { Seldom } from './seldom.ts';
import { type SamplerSetting, shownEndpoint, type TracingSettings } from './settings.ts';
import type { Tracing } from './span.ts';
import type { SpanCounts } from './span-counts.ts';

/** How long the last spans may take when the process ends, where they may take so long at all. */
const FLUSH_MS = 5_000;
/** How often the log tells of spans that were not exported. */
const TELL_EVERY_MS = 60_000;
/** What is logged of the library's own words: those of a collector may be among them. */
const WORDS_SHOWN = 300;

export interface StartOptions {
  readonly settings: TracingSettings;
  readonly counts: SpanCounts;
  readonly log: Log;
  /** Names the process: the same in its audit log. */
  readonly replica: string;
}

/** Begins to make spans and to export them. Loads the SDK, so nothing imports this but a gateway that has an exporter. */
export function startTracing({ settings, counts, log, replica }: StartOptions): Tracing {
  const { url, batch } = settings;
  for (const warning of settings.warnings) log.warn(warning);
  tellLibraryWords(log);
  const seldom = new Seldom(TELL_EVERY_MS);
  let failing = false;
  const bounded = new BoundedExport({
    counts,
    most: batch.maxQueueSize,
    timeoutMs: batch.exportTimeoutMs,
    onFailure: (why, count) => {
      failing = true;
      seldom.say(count, (spans) => log.warn({ why, spans, endpoint: shownEndpoint(url) }, 'spans are not exported'));
    },
    onSuccess: () => {
      if (failing) log.info({ endpoint: shownEndpoint(url) }, 'spans are exported again');
      failing = false;
    },
  });
  const batches = new BatchSpanProcessor({
    exporter: bounded.exporter(makeExporter(url)),
    maxQueueSize: batch.maxQueueSize,
    maxExportBatchSize: batch.maxExportBatchSize,
    scheduledDelayMillis: batch.scheduledDelayMs,
    exportTimeoutMillis: batch.exportTimeoutMs * 2,
  });
  const provider = new TracerProvider({
    resource: resourceOf(replica),
    sampler: samplerOf(settings.sampler),
    spanProcessors: [bounded.processor(batches)],
  });
  log.info({ endpoint: shownEndpoint(url) }, 'spans are exported');
  return new SdkTracing({ tracer: provider.getTracer('toolgate'), propagates: settings.propagates }, async () => {
    const left = await endWithin(provider.shutdown(), Math.min(FLUSH_MS, batch.exportTimeoutMs), log);
    if (left) log.warn('the collector did not take the last spans in time; they are dropped');
    diag.disable();
  });
}

/** Whether `work` was still under way after `ms`. */
async function endWithin(work: Promise<void>, ms: number, log: Log): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => late.resolve(true), ms);
  const ended = work.then(
    () => false,
    (error: unknown) => {
      log.warn({ err: error }, 'the export of spans did not end cleanly');
      return false;
    },
  );
  try {
    return await Promise.race([ended, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** What the environment says of the service goes before what is known of it here. */
function resourceOf(replica: string): Resource {
  const known = resourceFromAttributes({ 'service.name': 'toolgate', 'service.instance.id': replica });
  const said = detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] });
  return defaultResource().merge(known).merge(said);
}

function samplerOf({ name, ratio }: SamplerSetting): Sampler {
  switch (name) {
    case 'always_on':
      return new AlwaysOnSampler();
    case 'always_off':
      return new AlwaysOffSampler();
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(ratio);
    case 'parentbased_always_on':
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
    case 'parentbased_always_off':
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    case 'parentbased_traceidratio':
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) });
  }
}

/** What the library has to say goes to the operational log, seldom and cut short, and never to the console. */
function tellLibraryWords(log: Log): void {
  const seldom = new Seldom(TELL_EVERY_MS);
  const tell = (...words: readonly unknown[]): void => {
    const said = words.filter((word) => typeof word === 'string').join(' ');
    seldom.say(1, () => log.warn({ said: said.slice(0, WORDS_SHOWN) }, 'the export of spans'));
  };
  const silent = (): undefined => undefined;
  diag.setLogger(
    { error: tell, warn: tell, info: silent, debug: silent, verbose: silent },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}
