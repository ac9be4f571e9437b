import type { Problem } from '../exchange.ts';

/** The gateway cannot record calls; nothing was sent. */
export function storeUnavailable(why: string): Problem {
  return {
    status: 503,
    code: 'store_unavailable',
    detail: `${why}; nothing was sent, so the call may be made again`,
    retryAfterSeconds: 2,
  };
}

/** Other calls of the session were recorded each time that this one was about to be. */
export const SESSION_BUSY: Problem = {
  status: 409,
  code: 'session_busy',
  detail: 'other calls of the session kept coming first; send the call again',
  retryAfterSeconds: 1,
};

export const TOO_MANY_SESSIONS: Problem = {
  status: 429,
  code: 'too_many_sessions',
  detail: 'the credential has as many live sessions as it may have; go on in one of them by naming it in `session`',
  retryAfterSeconds: 60,
};

export const RUN_FOREIGN: Problem = {
  status: 409,
  code: 'run_foreign',
  detail: 'a run of that name lives in another session of the same credential; name another run',
};

export const KEY_MISSING: Problem = {
  status: 400,
  code: 'idempotency_key_missing',
  detail: 'writes of this tool must bring an idempotency key; send one, new for each call, in `Idempotency-Key`',
};

export const KEY_REUSED: Problem = {
  status: 422,
  code: 'idempotency_key_reused',
  detail: 'the idempotency key was used for another call; make a new key for each call',
};

export const KEY_IN_FLIGHT: Problem = {
  status: 409,
  code: 'idempotency_in_flight',
  detail: 'the first call with this idempotency key is still under way; ask again for its answer',
  retryAfterSeconds: 1,
};

export const ANSWER_NOT_KEPT: Problem = {
  status: 409,
  code: 'answer_not_kept',
  detail: 'the call with this idempotency key ran, but its answer was too large to keep; it is not run again',
};

export const OUTCOME_UNKNOWN: Problem = {
  status: 409,
  code: 'outcome_unknown',
  detail:
    'nobody knows yet whether the first call with this idempotency key was done; it is not sent again until a person, or the backend, has settled it',
};
