import assert from 'node:assert/strict';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { type Backend, httpBackend } from '../http/backends.ts';
import { decodeSpans, type ReceivedSpan } from './otlp-decode.ts';

/** What a collector does with an export: takes it, leaves it without an answer, or answers as told. */
export type Manners = 'take' | 'hang' | ((response: ServerResponse) => void);

/** A collector of spans over HTTP. */
export interface Collector extends Backend {
  manners: Manners;
  /** Every span that came, oldest first. */
  readonly spans: ReceivedSpan[];
  /** Every body that came, as bytes. */
  readonly bodies: Buffer[];
  readonly requests: { readonly path: string; readonly headers: IncomingHttpHeaders }[];
  /** Waits until the spans of a trace are such that `enough` says so, and resolves with them. */
  trace(traceId: string, enough: (spans: readonly ReceivedSpan[]) => boolean): Promise<readonly ReceivedSpan[]>;
  /** Waits for the first span that is so: one of a trace that the gateway began. */
  span(is: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan>;
}

const LONGEST_MS = 30_000;

export async function startCollector(): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const bodies: Buffer[] = [];
  const requests: Collector['requests'] = [];
  const backend = await httpBackend((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      bodies.push(body);
      requests.push({ path: request.url ?? '', headers: request.headers });
      const { manners } = collector;
      if (manners === 'hang') return;
      if (manners !== 'take') return manners(response);
      spans.push(...decodeSpans(body));
      response.setHeader('content-type', 'application/x-protobuf').end();
    });
  });
  const trace: Collector['trace'] = async (traceId, enough) => {
    for (const before = Date.now(); ; await pause(10)) {
      const found = spans.filter((span) => span.traceId === traceId);
      if (enough(found)) return found;
      const names = found.map(({ kind, name }) => `${kind} ${name}`).join(', ');
      assert.ok(Date.now() - before < LONGEST_MS, `the spans of ${traceId} are ${names}`);
    }
  };
  const span: Collector['span'] = async (is) => {
    for (const before = Date.now(); ; await pause(10)) {
      const found = spans.find(is);
      if (found !== undefined) return found;
      assert.ok(Date.now() - before < LONGEST_MS, 'the span does not come');
    }
  };
  const collector: Collector = { ...backend, manners: 'take', spans, bodies, requests, trace, span };
  return collector;
}

/** Runs `start` with these variables in the environment, which stays as it was. The exporter's library reads no other. */
export async function withEnv<T>(env: Readonly<Record<string, string>>, start: () => Promise<T>): Promise<T> {
  const before = Object.fromEntries(Object.keys(env).map((name) => [name, process.env[name]]));
  Object.assign(process.env, env);
  try {
    return await start();
  } finally {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}

/** `traceparent` of a caller, of a trace of its own. */
export function callerTrace(flags: '00' | '01' = '01'): {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceparent: string;
} {
  const traceId = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('hex');
  const spanId = Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString('hex');
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-${flags}` };
}

/** Those of a kind. */
export const find = (spans: readonly ReceivedSpan[], kind: ReceivedSpan['kind']): readonly ReceivedSpan[] =>
  spans.filter((span) => span.kind === kind);

/** The one of a kind; fails where there are others or none. */
export function one(spans: readonly ReceivedSpan[], kind: ReceivedSpan['kind']): ReceivedSpan {
  const [first, ...more] = find(spans, kind);
  assert.ok(first !== undefined && more.length === 0, `${1 + more.length} ${kind} spans`);
  return first;
}

/** The span of a request ends last, and so it comes last: its trace is whole. */
export const hasServer = (spans: readonly ReceivedSpan[]): boolean => find(spans, 'server').length > 0;

/** The traceparent that a backend must see of a client span. */
export const sentBy = ({ traceId, spanId }: ReceivedSpan): string => `00-${traceId}-${spanId}-01`;
