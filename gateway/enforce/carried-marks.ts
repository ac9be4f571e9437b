import { carryInto, carryOver, type SessionView } from '../../policy/session.ts';
import type { Gateway } from '../gateway.ts';
import type { Session } from '../sessions.ts';
import type { SessionKey } from '../store/port.ts';
import type { ReadCall } from './read-call.ts';

/**
 * Whether what an agent did in its other sessions bears on a call: a write may be tainted by what was read in any of them,
 * and an order rule is one for all of them. A session that was opened beforehand is no way out either
 * (docs/security-model.md, "Sessions"). A host's sessions are those of different people.
 */
export function heedsOtherSessions({ tool, request }: ReadCall): boolean {
  if (tool === undefined || request.caller.host || request.via === 'engine') return false;
  return tool.writes || tool.atMost !== undefined || tool.notAfter.length > 0;
}

/** The view with what the caller's other sessions of late carry over by now, where the call heeds it. */
export async function withOtherSessions(
  gateway: Gateway,
  read: ReadCall,
  { record }: Session,
  view: SessionView,
): Promise<SessionView> {
  if (!heedsOtherSessions(read)) return view;
  const since = gateway.now() - read.loaded.sessions.carryMs;
  const others = await gateway.store.viewsOfCaller(record.issuer, record.caller, since, record.sid);
  return carryInto(view, carryOver(others));
}

/** The line that an agent's guarded calls stand in, over all its sessions: two at once never both take the last place. */
export function lineOfCaller(key: SessionKey): SessionKey {
  // No session has an empty name.
  return { ...key, session: '' };
}
