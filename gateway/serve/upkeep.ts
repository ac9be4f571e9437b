import type { Gateway } from '../gateway.ts';
import type { Log } from '../log.ts';
import type { Store } from '../store/port.ts';

const UPKEEP_MS = 10_000;

/** Leases are renewed, written outbox rows marked, and what is past its keeping deleted, a little at a time. */
export function startUpkeep(gateway: Gateway, store: Store, log: Log): NodeJS.Timeout {
  const timer = setInterval(() => {
    upkeep(gateway, store).catch((error: unknown) => log.warn({ err: error }, 'the upkeep of the store failed'));
  }, UPKEEP_MS);
  timer.unref();
  return timer;
}

async function upkeep(gateway: Gateway, store: Store): Promise<void> {
  const now = gateway.now();
  await store.renewLeases(gateway.replica, now + 3 * UPKEEP_MS);
  await gateway.commit([{ op: 'outbox_written', replica: gateway.replica, n: gateway.audit.durableUpTo }]);
  const { idempotencyKeepMs, sessions } = gateway.loaded;
  await store.sweep(now, { claimsMs: idempotencyKeepMs, sessionsMs: Math.max(sessions.carryMs, idempotencyKeepMs) });
}
