import type { OutcomeEvent } from '../audit/events.ts';
import type { CallOutcome } from '../exchange.ts';
import type { StoredAnswer } from '../store/port.ts';
import type { Allowed } from './allowed.ts';

/** What became of a sent call, as its answer says. */
export interface Settled {
  readonly outcome: CallOutcome;
  /** The whole body, where it was read. */
  readonly body?: Uint8Array;
  readonly contentType?: string;
  readonly answer?: StoredAnswer;
  readonly upstreamStatus?: number;
  readonly upstreamMs: number;
  /** A code: why it failed or is unknown. */
  readonly why?: string;
  /** The person who says so, where nobody else could. */
  readonly by?: string;
  /** How many records of the answer a filter held back. */
  readonly heldBack?: number;
}

/** The line that tells of it. */
export function outcomeEvent(allowed: Allowed, settled: Settled): OutcomeEvent {
  const { place, read, tool } = allowed;
  const { outcome, upstreamMs, upstreamStatus, why } = settled;
  return {
    event: 'outcome',
    ...(settled.by === undefined ? { by: 'gateway' } : { by: 'approver', approver: settled.by }),
    outcome,
    tool: tool.id,
    agent: place.agent,
    caller: read.request.caller.name,
    session: place.key.session,
    step: place.step,
    latency: { upstream: upstreamMs },
    ...(read.request.route === undefined ? {} : { route: read.request.route }),
    ...(place.run === undefined ? {} : { run: place.run }),
    ...(upstreamStatus === undefined ? {} : { upstream_status: upstreamStatus }),
    ...(why === undefined ? {} : { why }),
    ...(settled.heldBack === undefined ? {} : { held_back: settled.heldBack }),
  };
}
