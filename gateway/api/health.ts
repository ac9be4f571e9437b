import type { Gateway } from '../gateway.ts';
import { jsonAnswer } from './api-context.ts';

/** `GET /healthz`: the process answers. */
export function getHealth(): Response {
  return jsonAnswer({ status: 'ok' });
}

/** `GET /readyz`: whether calls can be taken, and what keeps them from being taken. */
export async function getReadiness(gateway: Gateway): Promise<Response> {
  const checks = await Promise.all([
    probe('store', () => gateway.store.ready()),
    probe('audit', () => gateway.audit.ready()),
    probe('shutdown', () => gateway.stopping.throwIfAborted()),
  ]);
  const failing = checks.filter((check) => check.why !== undefined);
  const status = failing.length === 0 ? 'ready' : 'not_ready';
  return jsonAnswer({ status, checks }, failing.length === 0 ? 200 : 503);
}

interface Probe {
  readonly name: string;
  readonly ok: boolean;
  readonly why?: string;
}

async function probe(name: string, check: () => void | Promise<void>): Promise<Probe> {
  try {
    await check();
    return { name, ok: true };
  } catch (error) {
    return { name, ok: false, why: error instanceof Error ? error.message : String(error) };
  }
}
