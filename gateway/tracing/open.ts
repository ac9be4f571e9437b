import type { Environment } from '../config/substitute.ts';
import type { Log } from '../log.ts';
import { readTracingSettings } from './settings.ts';
import type { Tracing } from './span.ts';
import type { SpanCounts } from './span-counts.ts';

export interface OpenOptions {
  readonly env: Environment;
  readonly counts: SpanCounts;
  readonly log: Log;
  readonly replica: string;
}

/**
 * Spans for a process, where its environment configures an exporter. What cannot be had is told and leaves the gateway
 * without: traces are for those who look at it, and no call hangs on them.
 */
export async function openTracing({ env, ...options }: OpenOptions): Promise<Tracing | undefined> {
  const wish = readTracingSettings(env);
  if (wish.kind === 'off') return undefined;
  try {
    if (wish.kind === 'unusable') throw new Error(wish.why);
    const { startTracing } = await import('./start.ts');
    return startTracing({ settings: wish.settings, ...options });
  } catch (error) {
    options.log.error({ err: error }, 'no spans are made');
    return undefined;
  }
}
