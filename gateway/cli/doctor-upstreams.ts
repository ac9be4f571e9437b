import { Agent, request } from 'undici';
import type { RuntimeRoute } from '../catalogue/runtime-route.ts';
import type { Finding } from './doctor.ts';

/** What came of asking an upstream. */
export interface Reached {
  readonly route: RuntimeRoute;
  readonly upstream: string;
  /** Absent where it answered. */
  readonly why?: string;
  /** How far its clock is ahead of this machine's. */
  readonly aheadMs?: number;
}

const ASK_MS = 5_000;
/** Beyond that, `receipts.max_age` and the ends of keys and confirmations are not what their words say. */
const MAX_CLOCK_MS = 30_000;

/** Asks every upstream for the head of its root, without any credential: a safe request (RFC 9110 section 9.2.1). */
export async function reachUpstreams(routes: readonly RuntimeRoute[]): Promise<readonly Reached[]> {
  return Promise.all(
    routes.flatMap((route) => {
      const { upstream, source } = route;
      if (upstream !== undefined) return [reach(route, upstream)];
      // A server that the gateway runs as a program of its own has no address.
      return source.kind === 'mcp' && 'url' in source ? [reach(route, source.url)] : [];
    }),
  );
}

async function reach(route: RuntimeRoute, upstream: string): Promise<Reached> {
  const { ca, cert, key, serverName } = route.upstreamTls ?? {};
  const dispatcher = new Agent({
    connect: {
      timeout: ASK_MS,
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined || key === undefined ? {} : { cert, key: key.reveal() }),
      ...(serverName === undefined ? {} : { servername: serverName }),
    },
  });
  try {
    const { headers, body } = await request(`${upstream}/`, {
      method: 'HEAD',
      dispatcher,
      signal: AbortSignal.timeout(ASK_MS),
    });
    await body.dump();
    const at = typeof headers['date'] === 'string' ? Date.parse(headers['date']) : Number.NaN;
    return { route, upstream, ...(Number.isNaN(at) ? {} : { aheadMs: at - Date.now() }) };
  } catch (error) {
    return { route, upstream, why: whyOf(error) };
  } finally {
    await dispatcher.destroy();
  }
}

function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message === '' && 'code' in error ? String(error.code) : error.message;
}

/** What the answers of the upstreams mean, seen from the gateway's machine or from an agent's. */
export function diagnoseUpstreams(reached: readonly Reached[], as: 'gateway' | 'agent'): readonly Finding[] {
  return reached.flatMap((one) => (as === 'agent' ? roundTheGateway(one) : fromTheGateway(one)));
}

function fromTheGateway({ route, upstream, why }: Reached): readonly Finding[] {
  const about = `upstream of ${route.name}`;
  if (why !== undefined) {
    const remedy = 'start it, or correct `upstream`, `upstream_tls` or what stands between';
    return [{ about, state: 'fault', found: `\`${upstream}\` does not answer: ${why}`, remedy }];
  }
  const { host } = new URL(upstream);
  const proves = route.upstreamHeaders.length > 0 || route.upstreamTls?.cert !== undefined || route.passAuthorization;
  const answers: Finding = { about, state: 'ok', found: `\`${upstream}\` answers` };
  if (proves) return [answers];
  return [
    answers,
    {
      about: `round ${route.name}`,
      state: 'warning',
      found: `nothing shows \`${host}\` that a call comes from the gateway: whoever reaches it calls it unguarded`,
      remedy:
        'let it take connections of the gateway alone, or a secret (`upstream_headers`, `upstream_tls`); `toolgate doctor --as agent` where agents run tells whether it can be reached there',
    },
  ];
}

function roundTheGateway({ route, upstream, why }: Reached): readonly Finding[] {
  const about = `round ${route.name}`;
  if (why !== undefined) {
    return [{ about, state: 'ok', found: `\`${upstream}\` cannot be reached from here (${why})` }];
  }
  return [
    {
      about,
      state: 'fault',
      found: `\`${upstream}\` answers from here: what the gateway refuses can be done round it`,
      remedy: 'close the way: a network of the gateway’s own, a firewall, a network policy, a client certificate',
    },
  ];
}

/** This machine's clock against those of the upstreams. */
export function diagnoseClock(reached: readonly Reached[]): readonly Finding[] {
  const about = 'clock';
  let worst: { readonly aheadMs: number; readonly upstream: string } | undefined;
  for (const { aheadMs, upstream } of reached) {
    if (aheadMs !== undefined && Math.abs(aheadMs) >= Math.abs(worst?.aheadMs ?? 0)) worst = { aheadMs, upstream };
  }
  if (worst === undefined) {
    const found = 'no upstream said what time it is, so the clock was held against nothing';
    return [{ about, state: 'warning', found, remedy: 'see that this machine takes its time from a server (NTP)' }];
  }
  const seconds = Math.round(Math.abs(worst.aheadMs) / 1_000);
  if (Math.abs(worst.aheadMs) <= MAX_CLOCK_MS) {
    return [{ about, state: 'ok', found: `within ${seconds} s of the upstreams’` }];
  }
  const found = `\`${worst.upstream}\` is ${seconds} s ${worst.aheadMs > 0 ? 'ahead' : 'behind'}`;
  return [{ about, state: 'fault', found, remedy: 'set the clocks (NTP): receipts, keys and approvals end by them' }];
}
