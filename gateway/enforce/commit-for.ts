import type { Gateway } from '../gateway.ts';
import type { CommitResult, Operation } from '../store/port.ts';
import type { ReadCall } from './read-call.ts';

/** Commits what a call waits for; its span tells how long that took. */
export function commitFor(
  gateway: Gateway,
  { request: { span } }: ReadCall,
  operations: readonly Operation[],
): Promise<CommitResult> {
  if (span === undefined) return gateway.commit(operations);
  const startedAtMs = performance.now();
  return gateway.commit(operations).finally(() => span.stored(startedAtMs));
}
