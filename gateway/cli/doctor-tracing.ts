import type { Environment } from '../config/substitute.ts';
import { readTracingSettings, shownEndpoint } from '../tracing/settings.ts';
import type { Finding } from './doctor.ts';

const ABOUT = 'tracing';
const ASK_MS = 2_000;
/** As `ExportResultCode.SUCCESS` of the SDK's core. */
const TAKEN = 0;

/**
 * Whether spans are to be exported, and whether the collector takes an export, of no spans, with the headers and
 * certificates of the environment. No call hangs on it, so nothing found here is a fault.
 */
export async function diagnoseTracing(env: Environment): Promise<readonly Finding[]> {
  const wish = readTracingSettings(env);
  if (wish.kind === 'off') return [{ about: ABOUT, state: 'ok', found: `off: ${wish.why}` }];
  if (wish.kind === 'unusable') {
    return [{ about: ABOUT, state: 'warning', found: `off: ${wish.why}`, remedy: 'correct it, or take it away' }];
  }
  const { url, warnings } = wish.settings;
  const place = shownEndpoint(url);
  const why = await tryExport(url);
  const remedy = 'start the collector, or correct `OTEL_EXPORTER_OTLP_ENDPOINT` and `OTEL_EXPORTER_OTLP_HEADERS`';
  return [
    ...warnings.map((found): Finding => ({ about: ABOUT, state: 'warning', found, remedy: 'correct it' })),
    why === undefined
      ? { about: ABOUT, state: 'ok', found: `\`${place}\` takes spans` }
      : { about: ABOUT, state: 'warning', found: `\`${place}\` takes no spans: ${why}`, remedy },
  ];
}

/** Exports nothing, as spans would be. Resolves with why that was not taken. */
async function tryExport(url: string): Promise<string | undefined> {
  const [{ makeExporter }, { whyOf }] = await Promise.all([
    import('../tracing/exporter.ts'),
    import('../tracing/bounded-export.ts'),
  ]);
  const exporter = makeExporter(url, ASK_MS);
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve('timeout'), ASK_MS);
    exporter.export([], ({ code, error }) => {
      clearTimeout(timer);
      resolve(code === TAKEN ? undefined : whyOf(error));
    });
  });
}
