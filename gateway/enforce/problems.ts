import type { Problem } from '../exchange.ts';
import { fault } from '../http/problems.ts';

/** The gateway cannot record calls; nothing was sent. */
export function storeUnavailable(why: string): Problem {
  const detail = `${why}; nothing was sent, so the call may be made again`;
  return fault('store_unavailable', detail, { retryAfterSeconds: 2 });
}

/** Other calls of the session were recorded each time that this one was about to be. */
export const SESSION_BUSY: Problem = fault(
  'session_busy',
  'other calls of the session kept coming first; send the call again',
  { retryAfterSeconds: 1 },
);

export const TOO_MANY_SESSIONS: Problem = fault(
  'too_many_sessions',
  'the credential has as many live sessions as it may have; go on in one of them by naming it in `session`',
  { retryAfterSeconds: 60 },
);

export const RUN_FOREIGN: Problem = fault(
  'run_foreign',
  'a run of that name lives in another session of the same credential; name another run',
);

export const KEY_MISSING: Problem = fault(
  'idempotency_key_missing',
  'writes of this tool must bring an idempotency key; send one, new for each call, in `Idempotency-Key`',
);

export const KEY_REUSED: Problem = fault(
  'key_reused',
  'the idempotency key was used for another call; make a new key for each call',
);

export const KEY_IN_FLIGHT: Problem = fault(
  'key_in_flight',
  'the first call with this idempotency key is still under way; ask again for its answer',
  { retryAfterSeconds: 1 },
);

export const ANSWER_NOT_KEPT: Problem = fault(
  'answer_not_kept',
  'the call with this idempotency key was made, but its answer was too large to keep; it is not made again',
);

export const OUTCOME_PENDING: Problem = fault(
  'outcome_pending',
  'nobody knows yet whether the first call with this idempotency key was done; it is not sent again until a person, or the backend, has settled it',
  { retryAfterSeconds: 30 },
);
