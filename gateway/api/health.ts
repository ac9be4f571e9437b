import type { Gateway } from '../gateway.ts';
import { messageOf } from '../message-of.ts';
import { jsonAnswer } from './api-context.ts';

/** `GET /healthz`: the process answers. */
export function getHealth(): Response {
  return jsonAnswer({ status: 'ok' });
}

/**
 * `GET /readyz`: whether calls can be taken, and what keeps them from being taken. An MCP server that could not be asked for
 * its tools is told, and makes the gateway unready only where no other route has a tool: one server that is down must not
 * take the others' calls away.
 */
export async function getReadiness(gateway: Gateway): Promise<Response> {
  const { catalogue, mcp } = gateway.loaded;
  const checks = await Promise.all([
    probe('store', () => gateway.store.ready()),
    probe('audit', () => gateway.audit.ready()),
    probe('catalogue', () => {
      if (mcp.unlisted.length > 0) throw new Error(`not known what these servers offer: ${mcp.unlisted.join(', ')}`);
    }),
    probe('shutdown', () => gateway.stopping.throwIfAborted()),
  ]);
  const isReady = checks.every(({ ok, name }) => ok || (name === 'catalogue' && catalogue.tools.size > 0));
  return jsonAnswer({ status: isReady ? 'ready' : 'not_ready', checks }, isReady ? 200 : 503);
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
    return { name, ok: false, why: messageOf(error) };
  }
}
