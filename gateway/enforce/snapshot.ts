import type { Confirmation, Snapshot, StepFacts } from '../../policy/call.ts';
import type { SessionView } from '../../policy/session.ts';
import { argumentsDigest, originsDigest } from '../../receipts/digest.ts';
import type { Gateway } from '../gateway.ts';
import { settingsAt } from '../loaded.ts';
import type { Session } from '../sessions.ts';
import type { InSession } from './append.ts';
import { presentedConfirmation } from './confirmations.ts';
import type { ReadCall } from './read-call.ts';
import { namedSteps, stepFactsOf } from './step-facts.ts';
import { readUsage } from './usage.ts';
import { findAnswers } from './watched.ts';

const NO_STEPS: ReadonlyMap<number, StepFacts> = new Map();

/** Gathers everything that the check of a call may depend on, so that the check itself reads nothing else. */
export async function takeSnapshot(
  gateway: Gateway,
  read: ReadCall,
  opened: InSession,
  view: SessionView,
): Promise<Snapshot> {
  const { loaded } = read;
  const { session, fault } = opened;
  const { record, nonce } = session;
  const confirmation =
    read.request.members.confirmation === undefined ? undefined : await presentedConfirmation(gateway, read);
  const nowMs = gateway.now();
  return {
    catalogue: loaded.catalogue,
    settings: settingsAt(loaded, nowMs),
    session: {
      id: record.session,
      sid: record.sid,
      view,
      head: record.head,
      ...(fault === undefined ? {} : { fault: { fault: fault.fault, entry: fault.entry } }),
    },
    steps: withAdopted(await readSteps(gateway, read, session), opened),
    policy: loaded.policy,
    digests: {
      arguments: argumentsDigest(gateway.crypto, nonce, read.canonical),
      origins: originsDigest(gateway.crypto, nonce, read.canonicalOrigins),
    },
    nowMs,
    usage: await readUsage(gateway, read, { session: record.session, sid: record.sid }, nowMs),
    answers: await findAnswers(gateway, loaded, session, read.tool?.id),
    step7: loaded.conditions,
    step8: loaded.rulebook,
    ...(confirmation === undefined ? {} : { confirmation }),
  };
}

/** The snapshot with a confirmation that was found for the call rather than presented with it. */
export function withConfirmation(snapshot: Snapshot, confirmation: Confirmation): Snapshot {
  return { ...snapshot, confirmation };
}

/** The steps with what the carried history newly says, which the commit of this very call stores. */
function withAdopted(steps: ReadonlyMap<number, StepFacts>, opened: InSession): ReadonlyMap<number, StepFacts> {
  const { adopted, adoptedTool, believed } = opened;
  if (adopted === undefined || !believed || steps.size === 0) return steps;
  const changed = new Map(steps);
  const own = changed.get(adopted.step);
  if (own !== undefined) changed.set(adopted.step, { ...own, outcome: adopted.outcome });
  const undone = adoptedTool?.undoes === undefined ? undefined : changed.get(adoptedTool.undoes);
  if (undone === undefined) return changed;
  if (adopted.outcome === 'failed') changed.set(undone.step, { ...undone, undoAllowed: false });
  if (adopted.outcome === 'ran') changed.set(undone.step, { ...undone, outcome: 'compensated' });
  return changed;
}

async function readSteps(gateway: Gateway, read: ReadCall, session: Session): Promise<ReadonlyMap<number, StepFacts>> {
  const named = namedSteps(read);
  if (named.length === 0 || session.isNew) return NO_STEPS;
  const records = await gateway.store.findSteps(session.record.sid, named);
  return new Map(records.map((record) => [record.step, stepFactsOf(gateway, session.record.sid, record)]));
}
