import type { Environment } from '../config/substitute.ts';

/** Where spans go and which, as the environment variables of the OpenTelemetry specification say it. */
export interface TracingSettings {
  /** Where OTLP over HTTP is taken, with the path. May hold a credential: it is not for a log. */
  readonly url: string;
  readonly sampler: SamplerSetting;
  readonly batch: BatchSettings;
  /** `traceparent` is read from requests and written to backends. */
  readonly propagates: boolean;
  /** What was asked for and is passed over. */
  readonly warnings: readonly string[];
}

interface BatchSettings {
  /** Spans that wait to be exported; what comes beyond is dropped. */
  readonly maxQueueSize: number;
  readonly maxExportBatchSize: number;
  readonly scheduledDelayMs: number;
  /** How long one batch may take, retries included. */
  readonly exportTimeoutMs: number;
}

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

export interface SamplerSetting {
  readonly name: (typeof SAMPLERS)[number];
  /** From 0 to 1. */
  readonly ratio: number;
}

export type TracingWish =
  /** No exporter is asked for, or tracing is turned off. */
  | { readonly kind: 'off'; readonly why: string }
  /** One is asked for that this gateway does not have. */
  | { readonly kind: 'unusable'; readonly why: string }
  | { readonly kind: 'on'; readonly settings: TracingSettings };

const DEFAULT_ENDPOINT = 'http://localhost:4318';
/** A timer can be no longer. */
const LONGEST_MS: number = 2 ** 31 - 1;
/** More spans than these in memory would be a leak by another name. */
const MOST_SPANS = 100_000;

/**
 * Reads `OTEL_*` (OpenTelemetry specification, "Environment Variable Specification" and "OTLP Exporter"). An empty
 * variable is one that is not set. What else an exporter reads (headers, certificates, compression), its library does.
 */
export function readTracingSettings(env: Environment): TracingWish {
  const read = (name: string): string | undefined => {
    const text = env[name]?.trim();
    return text === '' ? undefined : text;
  };
  if (read('OTEL_SDK_DISABLED')?.toLowerCase() === 'true') {
    return { kind: 'off', why: '`OTEL_SDK_DISABLED` is true' };
  }
  const exporters = read('OTEL_TRACES_EXPORTER')?.split(',').map(tidy);
  if (exporters?.includes('none') === true) return { kind: 'off', why: '`OTEL_TRACES_EXPORTER` is none' };
  const own = read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT');
  const shared = read('OTEL_EXPORTER_OTLP_ENDPOINT');
  if (exporters === undefined && own === undefined && shared === undefined) {
    return { kind: 'off', why: 'no exporter is configured' };
  }
  if (exporters !== undefined && !exporters.includes('otlp')) {
    return { kind: 'unusable', why: '`OTEL_TRACES_EXPORTER` names no exporter that is here: it can be otlp, or none' };
  }
  const protocol = read('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') ?? read('OTEL_EXPORTER_OTLP_PROTOCOL') ?? 'http/protobuf';
  if (protocol !== 'http/protobuf') {
    return {
      kind: 'unusable',
      why: '`OTEL_EXPORTER_OTLP_PROTOCOL` can be http/protobuf alone; collectors take it at port 4318',
    };
  }
  const url = own ?? below(shared ?? DEFAULT_ENDPOINT, 'v1/traces');
  if (!isHttp(url)) {
    return { kind: 'unusable', why: 'the endpoint of `OTEL_EXPORTER_OTLP_*` is no address that begins with http' };
  }
  const warnings: string[] = [];
  return {
    kind: 'on',
    settings: {
      url,
      sampler: readSampler(read, warnings),
      batch: readBatch(read, warnings),
      propagates: readPropagators(read, warnings),
      warnings,
    },
  };
}

/** An endpoint as it may be shown: without a credential, a query or a path, in each of which a secret may stand. */
export function shownEndpoint(url: string): string {
  return new URL(url).origin;
}

type Read = (name: string) => string | undefined;

function readSampler(read: Read, warnings: string[]): SamplerSetting {
  const text = read('OTEL_TRACES_SAMPLER')?.toLowerCase() ?? 'parentbased_always_on';
  const name = SAMPLERS.find((known) => known === text);
  if (name === undefined) {
    warnings.push(`\`OTEL_TRACES_SAMPLER\` can be ${SAMPLERS.join(', ')}; it is taken for parentbased_always_on`);
    return { name: 'parentbased_always_on', ratio: 1 };
  }
  const given = name.endsWith('traceidratio') ? read('OTEL_TRACES_SAMPLER_ARG') : undefined;
  const ratio = given === undefined ? 1 : Number(given);
  if (ratio >= 0 && ratio <= 1) return { name, ratio };
  warnings.push('`OTEL_TRACES_SAMPLER_ARG` is no number from 0 to 1; it is taken for 1');
  return { name, ratio: 1 };
}

function readBatch(read: Read, warnings: string[]): BatchSettings {
  const whole = (name: string, otherwise: number, most: number): number => {
    const text = read(name);
    if (text === undefined) return otherwise;
    const value = Number(text);
    if (Number.isSafeInteger(value) && value >= 1 && value <= most) return value;
    warnings.push(`\`${name}\` is no whole number from 1 to ${most}; it is taken for ${otherwise}`);
    return otherwise;
  };
  const maxQueueSize = whole('OTEL_BSP_MAX_QUEUE_SIZE', 2048, MOST_SPANS);
  return {
    maxQueueSize,
    maxExportBatchSize: Math.min(whole('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512, MOST_SPANS), maxQueueSize),
    scheduledDelayMs: whole('OTEL_BSP_SCHEDULE_DELAY', 5_000, LONGEST_MS),
    exportTimeoutMs: whole('OTEL_BSP_EXPORT_TIMEOUT', 30_000, Math.floor(LONGEST_MS / 2)),
  };
}

/** Baggage is passed over in silence: it is no trace, and a route says which headers it lets through. */
function readPropagators(read: Read, warnings: string[]): boolean {
  const names = (read('OTEL_PROPAGATORS') ?? 'tracecontext,baggage').split(',').map(tidy);
  const unknown = names.filter((name) => !['tracecontext', 'baggage', 'none', ''].includes(name));
  if (unknown.length > 0) {
    warnings.push('`OTEL_PROPAGATORS` names others than tracecontext, baggage and none, which are passed over');
  }
  return names.includes('tracecontext') && !names.includes('none');
}

function tidy(name: string): string {
  return name.trim().toLowerCase();
}

function below(endpoint: string, path: string): string {
  return `${endpoint}${endpoint.endsWith('/') ? '' : '/'}${path}`;
}

function isHttp(url: string): boolean {
  return URL.canParse(url) && ['http:', 'https:'].includes(new URL(url).protocol);
}
