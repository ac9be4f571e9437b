import type { Snapshot } from '../../policy/call.ts';
import { checkCall } from '../../policy/check.ts';
import { openView } from '../../policy/session.ts';
import { ALLOW_STEP } from '../../policy/steps/allow.ts';
import { CATALOGUE_STEP } from '../../policy/steps/catalogue.ts';
import { CONDITIONS_STEP } from '../../policy/steps/conditions.ts';
import { DESTINATION_STEP } from '../../policy/steps/destination.ts';
import { SCHEMA_STEP } from '../../policy/steps/schema.ts';
import type { Tool } from '../../policy/tool.ts';
import type { Step, Verdict } from '../../policy/verdict.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { Gateway } from '../gateway.ts';
import { type Loaded, settingsAt } from '../loaded.ts';
import type { Session } from '../sessions.ts';
import type { ReadCall } from './read-call.ts';
import { readUsage } from './usage.ts';
import { findAnswers } from './watched.ts';

/** What a receipt route decides for itself: a refusal, or what the call was let through under. */
export type Enforced =
  | { readonly held: { readonly reason: string; readonly detail: JsonObject } }
  | { readonly snapshot: Snapshot; readonly verdict: Verdict };

/**
 * The rows that a receipt route decides for itself, whatever the receipt says: those of `receipts.enforce`. The schema
 * is looked at on every route, since what does not fit it must not be sent.
 * @param own the history is this gateway's own
 * @param counts the call is not counted yet: no check of this gateway's has reserved it, or what it reserved was released
 */
export async function enforceBeforeSending(
  gateway: Gateway,
  read: ReadCall,
  tool: Tool,
  at: { readonly session: Session | undefined; readonly name: string; readonly own: boolean; readonly counts: boolean },
): Promise<Enforced> {
  const snapshot = await snapshotOf(gateway, read, at);
  const verdict = checkCall(snapshot, read.call, rowsOf(read.loaded, at.counts));
  if (verdict.decision === 'allow') return { snapshot, verdict };
  if (verdict.error !== undefined)
    gateway.log.error({ err: verdict.error, tool: tool.id }, 'the limits of a receipt route failed');
  const pointer = verdict.pointer === undefined ? {} : { pointer: verdict.pointer };
  return { held: { reason: verdict.reasons[0] ?? 'internal_error', detail: { ...verdict.detail, ...pointer } } };
}

function rowsOf({ receipts }: Loaded, counts: boolean): readonly Step[] {
  return [
    CATALOGUE_STEP,
    SCHEMA_STEP,
    ...(receipts.enforce.has('destination') ? [DESTINATION_STEP] : []),
    ...(counts && receipts.enforce.has('limits') ? [CONDITIONS_STEP] : []),
    ALLOW_STEP,
  ];
}

async function snapshotOf(
  gateway: Gateway,
  read: ReadCall,
  { session, name, own }: { readonly session: Session | undefined; readonly name: string; readonly own: boolean },
): Promise<Snapshot> {
  const { loaded } = read;
  const nowMs = gateway.now();
  // Another issuer's session goes on by its name, whatever is kept of it here.
  const kept = session === undefined || !own ? {} : { sid: session.record.sid };
  return {
    catalogue: loaded.catalogue,
    settings: settingsAt(loaded, nowMs),
    session: {
      id: name,
      ...kept,
      view: session?.record.view ?? openView(),
      head: session?.record.head,
    },
    steps: new Map(),
    policy: loaded.policy,
    digests: { arguments: '', origins: '' },
    nowMs,
    usage: await readUsage(gateway, read, { session: name, ...kept }, nowMs),
    answers: session === undefined ? [] : await findAnswers(gateway, loaded, session, read.tool?.id),
    step7: loaded.conditions,
    step8: loaded.rulebook,
  };
}
