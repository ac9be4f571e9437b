import type { Confirmation } from '../../policy/call.ts';
import type { Verdict } from '../../policy/verdict.ts';
import { encodeBase64url } from '../../receipts/base64url.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { openConfirmation, signConfirmation } from '../../receipts/confirmation.ts';
import { shownDigest } from '../../receipts/digest.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { Gateway } from '../gateway.ts';
import type { Session } from '../sessions.ts';
import type { ConfirmationRecord } from '../store/port.ts';
import type { ReadCall } from './read-call.ts';

/** The confirmation that a call presents: a signed token, or the id of one that an approver decided. */
export async function presentedConfirmation(
  gateway: Gateway,
  read: ReadCall,
): Promise<Confirmation | 'invalid' | undefined> {
  const given = read.request.members.confirmation;
  if (given === undefined) return undefined;
  if (!given.includes('.')) {
    const record = await gateway.store.findConfirmation(given);
    if (record === undefined || record.caller !== read.request.caller.name) return 'invalid';
    return approvedConfirmation(record) ?? 'invalid';
  }
  const opened = openConfirmation(given, read.loaded.ownKeys, gateway.now());
  if (opened.state === 'invalid') return 'invalid';
  const { confirmation } = opened;
  const record = await gateway.store.findConfirmation(confirmation.id);
  // A token is for the host that was handed it; whoever else holds it holds nothing.
  if (record?.mode !== 'returned' || record.caller !== read.request.caller.name) return 'invalid';
  if (record.link !== confirmation.link || record.shown !== confirmation.shown) return 'invalid';
  return toConfirmation(record);
}

/** A held confirmation that an approver said yes to; `undefined` while, or where, none did. */
function approvedConfirmation(record: ConfirmationRecord): Confirmation | undefined {
  const approved = record.mode === 'held' && (record.state === 'approved' || record.state === 'spent');
  return approved ? toConfirmation(record) : undefined;
}

/** A record as row 10 reads it, taken as approved: what it would cover. */
export function toConfirmation(record: ConfirmationRecord): Confirmation {
  return {
    id: record.id,
    session: record.session,
    link: record.link,
    step: record.step,
    tool: record.tool,
    agent: record.agent,
    arguments: record.arguments,
    expires: record.expiresMs,
    spent: record.state === 'spent',
    point: record.point,
    asked: JSON.parse(record.asked) as Confirmation['asked'],
  };
}

/** Digest of all that must be the same for a repeat to find the confirmation that it waits for. */
export function callDigest(gateway: Gateway, read: ReadCall, verdict: Verdict): string {
  const { call, canonical, canonicalOrigins, loaded, request } = read;
  const { run = null, undoes = null } = call;
  const tool = verdict.tool?.id ?? call.tool;
  const named = [tool, verdict.agent, run, undoes, request.caller.name, loaded.policy];
  return gateway.keyed(
    canonicalize([named, canonical, canonicalOrigins, verdict.labels, verdict.reasons, questionOf(verdict)]),
  );
}

/** A new confirmation for a call that was answered `confirm`, at the entry that recorded it. */
export function makeConfirmation(
  gateway: Gateway,
  read: ReadCall,
  session: Session,
  verdict: Verdict,
  entry: { readonly step: number; readonly link: string; readonly arguments: string; readonly origins: string },
): ConfirmationRecord {
  const { call, loaded, request } = read;
  const tool = verdict.tool?.id ?? call.tool;
  const returned = request.caller.host && loaded.confirmations.mode === 'returned' && request.via !== 'mcp';
  const { record } = session;
  const now = gateway.now();
  const display: JsonObject = { tool, agent: verdict.agent, reasons: verdict.reasons, ...verdict.detail };
  return {
    id: encodeBase64url(gateway.random(16)),
    sid: record.sid,
    session: record.session,
    caller: request.caller.name,
    mode: returned ? 'returned' : 'held',
    point: loaded.confirmations.point ?? (record.mode === 'carried' ? 'exact' : 'until_write'),
    step: entry.step,
    link: entry.link,
    tool,
    agent: verdict.agent,
    arguments: entry.arguments,
    shown: shownDigest(gateway.crypto, session.nonce, {
      tool,
      agent: verdict.agent,
      arguments: call.arguments,
      origins: call.origins,
      reasons: verdict.reasons,
    }),
    expiresMs: now + loaded.confirmations.ttlMs,
    state: 'pending',
    callDigest: callDigest(gateway, read, verdict),
    asked: JSON.stringify({
      reasons: verdict.reasons,
      run: call.run,
      undoes: call.undoes,
      origins: entry.origins,
      labels: verdict.labels,
      caller: request.caller.name,
      policy: loaded.policy,
      ...questionOf(verdict),
    }),
    display: canonicalize(display),
    createdAtMs: now,
  };
}

/** What the rulebook asked, as row 11 put it into the answer. */
function questionOf(verdict: Verdict): { readonly question?: string } {
  const question = verdict.detail?.['question'];
  return typeof question === 'string' ? { question } : {};
}

/** What a caller is answered of a confirmation; the token goes to the host alone that it was made for. */
export function renderConfirmation(
  read: ReadCall,
  record: ConfirmationRecord,
): { readonly id: string; readonly token?: string; readonly expires: number; readonly approve_at?: string } {
  const { id, expiresMs: expires } = record;
  if (record.mode === 'held') return { id, expires, approve_at: `${read.loaded.confirmations.approveAt}/${id}` };
  const { session, step, link, tool, agent, arguments: args, shown } = record;
  const payload = { id, session, step, link, tool, agent, arguments: args, shown, expires };
  return { id, expires, token: signConfirmation(read.loaded.signing, payload) };
}
