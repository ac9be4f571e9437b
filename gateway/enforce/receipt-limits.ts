import type { Snapshot } from '../../policy/call.ts';
import { checkCall } from '../../policy/check.ts';
import { openView } from '../../policy/session.ts';
import { ALLOW_STEP } from '../../policy/steps/allow.ts';
import { CATALOGUE_STEP } from '../../policy/steps/catalogue.ts';
import { CONDITIONS_STEP } from '../../policy/steps/conditions.ts';
import { DESTINATION_STEP } from '../../policy/steps/destination.ts';
import { SCHEMA_STEP } from '../../policy/steps/schema.ts';
import type { Tool } from '../../policy/tool.ts';
import type { Step } from '../../policy/verdict.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { Gateway } from '../gateway.ts';
import type { Loaded } from '../loaded.ts';
import type { Session } from '../sessions.ts';
import type { ReadCall } from './read-call.ts';

/**
 * The rows that a receipt route decides for itself, whatever the receipt says: those of `receipts.enforce`. The schema
 * is looked at on every route, since what does not fit it must not be sent.
 */
export function enforceBeforeSending(
  gateway: Gateway,
  read: ReadCall,
  tool: Tool,
  session: Session | undefined,
): { readonly reason: string; readonly detail: JsonObject } | undefined {
  const verdict = checkCall(snapshotOf(gateway, read, session), read.call, rowsOf(read.loaded));
  if (verdict.decision === 'allow') return undefined;
  if (verdict.error !== undefined)
    gateway.log.error({ err: verdict.error, tool: tool.id }, 'the limits of a receipt route failed');
  const pointer = verdict.pointer === undefined ? {} : { pointer: verdict.pointer };
  return { reason: verdict.reasons[0] ?? 'internal_error', detail: { ...verdict.detail, ...pointer } };
}

function rowsOf({ receipts }: Loaded): readonly Step[] {
  return [
    CATALOGUE_STEP,
    SCHEMA_STEP,
    ...(receipts.enforce.has('destination') ? [DESTINATION_STEP] : []),
    ...(receipts.enforce.has('limits') ? [CONDITIONS_STEP] : []),
    ALLOW_STEP,
  ];
}

function snapshotOf(gateway: Gateway, read: ReadCall, session: Session | undefined): Snapshot {
  const { loaded } = read;
  return {
    catalogue: loaded.catalogue,
    settings: loaded.settings,
    session: {
      id: session?.record.session ?? '',
      view: session?.record.view ?? openView(),
      head: session?.record.head,
    },
    steps: new Map(),
    policy: loaded.policy,
    digests: { arguments: '', origins: '' },
    nowMs: gateway.now(),
    step7: loaded.conditions,
    step8: loaded.rulebook,
  };
}
