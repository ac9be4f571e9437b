import type { Confirmation, Snapshot, StepFacts } from '../../policy/call.ts';
import type { ToolAnswer, Usage } from '../../policy/conditions/condition.ts';
import type { SessionView } from '../../policy/session.ts';
import type { CanonicalJson } from '../../receipts/canonical.ts';
import { argumentsDigest, originsDigest } from '../../receipts/digest.ts';
import type { Gateway } from '../gateway.ts';
import { settingsAt } from '../loaded.ts';
import type { Session } from '../sessions.ts';
import type { InSession } from './append.ts';
import { presentedConfirmation } from './confirmations.ts';
import type { ReadCall } from './read-call.ts';
import { namedSteps, stepFactsOf } from './step-facts.ts';
import { NOTHING_COUNTED, readUsage } from './usage.ts';
import { findAnswers } from './watched.ts';

const NO_STEPS: ReadonlyMap<number, StepFacts> = new Map();

/** What the check reads of the store, beside the session itself. */
interface Gathered {
  readonly steps: Snapshot['steps'];
  readonly usage: Usage;
  readonly answers: readonly ToolAnswer[];
  readonly confirmation?: Confirmation | 'invalid';
}

const NO_ANSWERS: readonly ToolAnswer[] = [];

/** Gathers everything that the check of a call may depend on, so that the check itself reads nothing else. */
export async function takeSnapshot(
  gateway: Gateway,
  read: ReadCall,
  opened: InSession,
  view: SessionView,
): Promise<Snapshot> {
  const { session } = opened;
  const confirmation =
    read.request.members.confirmation === undefined ? undefined : await presentedConfirmation(gateway, read);
  const nowMs = gateway.now();
  return snapshotOf(gateway, read, opened, view, nowMs, {
    steps: withAdopted(await readSteps(gateway, read, session), opened),
    usage: await readUsage(gateway, read, { session: session.record.session, sid: session.record.sid }, nowMs),
    answers: await findAnswers(gateway, read.loaded, session, read.tool?.id),
    ...(confirmation === undefined ? {} : { confirmation }),
  });
}

/** The snapshot of a call whose check reads nothing of the store; undefined where it does. */
export function snapshotAtHand(gateway: Gateway, read: ReadCall, opened: InSession): Snapshot | undefined {
  const { loaded, tool, request } = read;
  if (
    tool === undefined ||
    request.members.confirmation !== undefined ||
    loaded.rules.limitsOf(tool.id) !== undefined ||
    loaded.answersRead(tool.id).length > 0 ||
    namedSteps(read).length > 0
  ) {
    return undefined;
  }
  const gathered = { steps: NO_STEPS, usage: NOTHING_COUNTED, answers: NO_ANSWERS };
  return snapshotOf(gateway, read, opened, opened.session.record.view, gateway.now(), gathered);
}

function snapshotOf(
  gateway: Gateway,
  read: ReadCall,
  opened: InSession,
  view: SessionView,
  nowMs: number,
  gathered: Gathered,
): Snapshot {
  const { loaded } = read;
  const { session, fault } = opened;
  const { record, nonce } = session;
  const { steps, usage, answers, confirmation } = gathered;
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
    steps,
    policy: loaded.policy,
    digests: {
      arguments: argumentsDigest(gateway.crypto, nonce, read.canonical),
      origins: originsOf(gateway, nonce, read.canonicalOrigins),
    },
    nowMs,
    usage,
    answers,
    step7: loaded.conditions,
    step8: loaded.rulebook,
    ...(confirmation === undefined ? {} : { confirmation }),
  };
}

const NO_ORIGINS = '{}';

/** The digest of no origins, by the nonce of a session in memory: most calls of a session have it. */
const DIGEST_OF_NONE = new WeakMap<Uint8Array, string>();

function originsOf(gateway: Gateway, nonce: Uint8Array, origins: CanonicalJson): string {
  if (origins !== NO_ORIGINS) return originsDigest(gateway.crypto, nonce, origins);
  const known = DIGEST_OF_NONE.get(nonce);
  if (known !== undefined) return known;
  const digest = originsDigest(gateway.crypto, nonce, origins);
  DIGEST_OF_NONE.set(nonce, digest);
  return digest;
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
