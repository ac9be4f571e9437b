import { performance } from 'node:perf_hooks';
import type { Snapshot } from '../../policy/call.ts';
import { openView, runOf } from '../../policy/session.ts';
import type { Tool } from '../../policy/tool.ts';
import type { Verdict } from '../../policy/verdict.ts';
import { encodeBase64url } from '../../receipts/base64url.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import {
  evaluateReceipt,
  type ReceiptCall,
  type ReceiptEvaluation,
  readReceipt,
  type VerifiedReceipt,
} from '../../receipts/receipt.ts';
import type { EnforceAnswer, ToolReceipt } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import { newSession, type Session } from '../sessions.ts';
import { type ClaimRecord, type Conflict, type Operation, type SessionKey, StoreFault } from '../store/port.ts';
import type { Allowed, Place } from './allowed.ts';
import { LEASE_MS, makeClaim, replayClaim } from './claims.ts';
import { KEY_IN_FLIGHT, SESSION_BUSY, TOO_MANY_SESSIONS } from './problems.ts';
import { forAgent, type ReadCall } from './read-call.ts';
import { readReceiptFacts } from './receipt-facts.ts';
import { enforceBeforeSending } from './receipt-limits.ts';
import { holdsOf } from './usage.ts';

/** What a receipt leads to: a call to send, a refusal, the stored answer of the first send, or a fault. */
export type Admitted = Allowed | Exclude<EnforceAnswer, { kind: 'forwarded' | 'decided' }>;

const MAX_ATTEMPTS = 8;

/** The value that a request brings as its receipt: apart from the call, or as the carried history of a receipt route. */
export function receiptOf(read: ReadCall): ReadCall['request']['receipt'] {
  return read.request.receipt ?? read.request.members.history;
}

/**
 * Admits a call by its receipt (docs/formats.md, "Receipts"), spending it in the commit that claims the call. With
 * `spend: false` nothing is written but the decision's line.
 */
export async function admitReceipt(gateway: Gateway, asked: ReadCall, spend: boolean): Promise<Admitted> {
  const read = asReceiptAgent(asked);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const admitted = await admitOnce(gateway, read, spend);
    if (admitted !== 'moved') return admitted;
  }
  return { kind: 'problem', problem: SESSION_BUSY };
}

/**
 * The call as the agent that its receipt names, where the call itself names none. Where the caller may not be that agent,
 * as any that reaches the tool: what is wrong is then the receipt's agent, and not that there is no such tool.
 */
function asReceiptAgent(asked: ReadCall): ReadCall {
  const named = agentOfReceipt(asked);
  const { agents } = asked.request.caller;
  if (named === undefined || agents.has(named)) return forAgent(asked, named);
  for (const agent of agents) {
    const read = forAgent(asked, agent);
    if (read.tool !== undefined) return read;
  }
  return asked;
}

/** The agent that the receipt's own entry names, for a call that names none; read before anything of it is believed. */
function agentOfReceipt(read: ReadCall): string | undefined {
  const value = receiptOf(read);
  if (read.agent !== '' || typeof value !== 'object' || value === null || !('entries' in value)) return undefined;
  const entries = value['entries'];
  const last = Array.isArray(entries) ? entries.at(-1) : undefined;
  if (typeof last !== 'object' || last === null || !('agent' in last)) return undefined;
  return typeof last.agent === 'string' ? last.agent : undefined;
}

async function admitOnce(gateway: Gateway, read: ReadCall, spend: boolean): Promise<Admitted | 'moved'> {
  const startedAt = performance.now();
  const { loaded, request } = read;
  const call = receiptCall(read);
  const found = readReceipt(call, receiptOf(read), {
    crypto: gateway.crypto,
    now: gateway.now(),
    audience: loaded.audience,
    issuers: loaded.receiptIssuers,
    cache: gateway.verified,
    maxAgeMs: loaded.receipts.maxAgeMs,
    ...(request.members.session === undefined ? {} : { session: request.members.session }),
  });
  if (!('verified' in found)) return tell(gateway, read, found.answer);
  const { history } = found.verified;
  const key: SessionKey = { issuer: history.issuer, caller: request.caller.name, session: history.session };
  const own = history.issuer === loaded.issuer;
  const session = await findNow(gateway, key);
  const link = encodeBase64url(found.link);
  const claim = await gateway.store.findClaim({ link });
  const tool = read.tool;
  const known = await readReceiptFacts(gateway, read, found, { session, claim, own });
  const evaluated = evaluateReceipt(gateway.crypto, found, call, known.facts);
  const { fault } = evaluated.answer.detail;
  if (fault === 'forked' || fault === 'link') await freeze(gateway, read, found, session);
  if (evaluated.handling === 'refuse' || tool === undefined) return tell(gateway, read, evaluated.answer);
  const ended = evaluated.handling === 'replay' ? undefined : endedRun(found, session, own);
  if (ended !== undefined) return tell(gateway, read, heldBack(evaluated.answer, ended));
  const counts = claim === undefined ? !own : claim.state === 'failed';
  const enforced = await enforceBeforeSending(gateway, read, tool, { session, name: history.session, counts });
  if ('held' in enforced) return tell(gateway, read, heldBack(evaluated.answer, enforced.held));
  // Whoever asks without sending is told what the receipt is worth; what became of the first send is not theirs to repeat.
  if (!spend || (request.purpose === 'decide' && evaluated.handling !== 'send')) {
    return tell(gateway, read, evaluated.answer);
  }
  if (evaluated.handling === 'wait') return { kind: 'problem', problem: KEY_IN_FLIGHT };
  if (evaluated.handling === 'replay' && claim !== undefined) {
    const replayed = await replayClaim(gateway, read, claim);
    if (replayed.kind === 'problem') return replayed;
    return { ...replayed, session: history.session, receipt: evaluated.answer };
  }
  const place = placeOf(found, key, session, link, own);
  const holds = counts && loaded.receipts.enforce.has('limits') ? enforced : undefined;
  const answers = enforced.snapshot.answers ?? [];
  const checkMs = performance.now() - startedAt;
  const { undoneLink } = known;
  return claimIt(gateway, read, { evaluated, tool, place, claim, session, holds, answers, checkMs, undoneLink });
}

function receiptCall(read: ReadCall): ReceiptCall {
  return {
    tool: read.tool?.id ?? read.call.tool,
    reachable: read.tool !== undefined,
    agent: read.call.agent ?? '',
    agents: read.request.caller.agents,
    arguments: read.canonical,
  };
}

/** The session as the store has it now: another replica may have seen its second line since this one last looked. */
async function findNow(gateway: Gateway, key: SessionKey): Promise<Session | undefined> {
  if (gateway.store.kind === 'sqlite') return gateway.sessions.find(key);
  const record = await gateway.store.findSession(key);
  return record === undefined ? undefined : gateway.sessions.wake(record, false);
}

/** A receipt outlives its run by minutes: a write of a run that is being undone must not come after its undo. */
function endedRun({ entry }: VerifiedReceipt, session: Session | undefined, own: boolean): Held | undefined {
  const { run, undoes } = entry;
  if (!own || session === undefined || run === undefined || undoes !== undefined) return undefined;
  return runOf(session.record.view, run)?.ended === true ? { reason: 'run_ended', detail: { run } } : undefined;
}

function placeOf(
  receipt: VerifiedReceipt,
  key: SessionKey,
  session: Session | undefined,
  link: string,
  own: boolean,
): Omit<Place, 'sid'> & { readonly sid: string | undefined } {
  const { step, agent, run, undoes } = receipt.entry;
  const at = { key, sid: session?.record.sid, step, link, agent, own };
  return { ...at, ...(run === undefined ? {} : { run }), ...(undoes === undefined ? {} : { undoes }) };
}

interface Admission {
  readonly evaluated: ReceiptEvaluation;
  readonly tool: Tool;
  readonly place: ReturnType<typeof placeOf>;
  readonly claim: ClaimRecord | undefined;
  readonly session: Session | undefined;
  /** What the call reserves under; absent where it is counted already. */
  readonly holds: { readonly snapshot: Snapshot; readonly verdict: Verdict } | undefined;
  readonly answers: NonNullable<Allowed['answers']>;
  readonly checkMs: number;
  /** Link of the step that the call undoes. */
  readonly undoneLink: string | undefined;
}

/** How far clocks may differ, in milliseconds: a receipt is good for so long before and after its age. */
const SKEW_MS = 60_000;

/** Spends the receipt and claims the call, or takes the claim of an earlier send again, in one commit. */
async function claimIt(
  gateway: Gateway,
  read: ReadCall,
  admission: Admission,
): Promise<Allowed | Extract<Admitted, { kind: 'problem' }> | 'moved'> {
  const { tool, claim: before, evaluated } = admission;
  const opening = admission.session === undefined ? openFor(gateway, read, admission.place.key) : undefined;
  const place: Place = { ...admission.place, sid: admission.place.sid ?? opening?.record.sid ?? '' };
  const { resend } = evaluated.answer;
  const { claim, operations: claiming } =
    resend && !tool.writes
      ? { claim: undefined, operations: [] }
      : before === undefined
        ? spendFirst(gateway, read, admission, place)
        : takeAgain(gateway, before);
  const { issuer, caller, session } = place.key;
  const line = gateway.audit.prepare({
    event: 'decision',
    via: read.request.via,
    decision: 'allow',
    reasons: evaluated.answer.reasons,
    policy: read.loaded.policy,
    latency: { check: admission.checkMs },
    issuer,
    ...(resend ? { resend: true } : {}),
    tool: tool.id,
    agent: place.agent,
    caller,
    session,
    step: place.step,
    ...(read.request.route === undefined ? {} : { route: read.request.route }),
  });
  const operations: readonly Operation[] = [
    ...(opening === undefined ? [] : [opening.operation]),
    ...claiming,
    ...reservationsOf(read, admission, place.link),
    { op: 'outbox', replica: gateway.audit.replica, n: line.n, line: line.line },
  ];
  const result = await commitOrAbandon(gateway, operations, line);
  if (!result.ok) {
    return result.conflict === 'too_many_sessions' ? { kind: 'problem', problem: TOO_MANY_SESSIONS } : 'moved';
  }
  if (opening !== undefined) gateway.sessions.keep(opening.record);
  return {
    kind: 'allowed',
    read,
    tool,
    place,
    receipt: evaluated.answer,
    answers: admission.answers,
    ...(claim === undefined ? {} : { claim }),
    unwaited: false,
    ...(resend ? { again: true } : {}),
    line,
  };
}

interface Claiming {
  readonly claim: ClaimRecord;
  readonly operations: readonly Operation[];
}

function spendFirst(gateway: Gateway, read: ReadCall, admission: Admission, place: Place): Claiming {
  const claim = makeClaim(gateway, read, admission.tool, place, admission.undoneLink);
  const { issuer, caller, session } = place.key;
  const untilMs = gateway.now() + 2 * (read.loaded.receipts.maxAgeMs + SKEW_MS);
  const key = { issuer, caller, session, step: place.step };
  return {
    claim,
    operations: [
      { op: 'spend_receipt', key, link: place.link, untilMs },
      { op: 'claim', claim },
    ],
  };
}

function takeAgain(gateway: Gateway, before: ClaimRecord): Claiming {
  const { link, fence, state } = before;
  const now = gateway.now();
  const taken = { leaseUntilMs: now + LEASE_MS, atMs: now, owner: gateway.replica } as const;
  return {
    claim: { ...before, fence: fence + 1, owner: gateway.replica, state: 'sending' },
    operations: [{ op: 'retake_claim', link, fence, from: [state], ...taken }],
  };
}

function reservationsOf(read: ReadCall, { holds }: Admission, link: string): readonly Operation[] {
  return holds === undefined ? [] : holdsOf(read.loaded, holds.verdict, read, holds.snapshot, link);
}

async function commitOrAbandon(
  gateway: Gateway,
  operations: readonly Operation[],
  line: ReturnType<Gateway['audit']['prepare']>,
): Promise<{ readonly ok: true } | Conflict> {
  try {
    const result = await gateway.commit(operations);
    if (!result.ok) gateway.audit.abandon(line);
    return result;
  } catch (error) {
    if (error instanceof StoreFault && !error.maybe) gateway.audit.abandon(line);
    throw error;
  }
}

/** A row for a session that only its issuer has the history of: a home for claims, and what a fork freezes. */
function openFor(
  gateway: Gateway,
  read: ReadCall,
  key: SessionKey,
): { record: Session['record']; operation: Operation } {
  const { loaded } = read;
  const now = gateway.now();
  const made = { mode: 'carried', audience: loaded.audience, view: openView() } as const;
  const record = newSession(key, made, gateway.random, now);
  const liveSinceMs = now - loaded.sessions.carryMs;
  return { record, operation: { op: 'open_session', session: record, maxLive: loaded.sessions.max, liveSinceMs } };
}

async function freeze(
  gateway: Gateway,
  read: ReadCall,
  receipt: VerifiedReceipt,
  session: Session | undefined,
): Promise<void> {
  if (session === undefined || session.record.frozen !== undefined) return;
  const { history } = receipt.verified;
  await gateway.commit([{ op: 'freeze_session', sid: session.record.sid, why: 'forked' }]);
  gateway.sessions.forget(session.record);
  await gateway.audit.append({
    event: 'fork',
    fault: 'forked',
    session: history.session,
    caller: read.request.caller.name,
    issuer: history.issuer,
    heads: [
      session.record.head ?? { step: -1, link: '' },
      { step: receipt.entry.step, link: encodeBase64url(receipt.link) },
    ],
  });
}

/** Answers without claiming anything; the decision is in the log all the same. */
async function tell(
  gateway: Gateway,
  read: ReadCall,
  answer: ToolReceipt,
): Promise<{ kind: 'receipt'; receipt: ToolReceipt }> {
  await gateway.audit.append({
    event: 'decision',
    via: read.request.via,
    decision: answer.decision,
    reasons: answer.reasons,
    policy: read.loaded.policy,
    latency: {},
    tool: answer.tool,
    agent: answer.agent,
    caller: read.request.caller.name,
    ...(answer.session === undefined ? {} : { session: answer.session }),
    ...(answer.step === undefined ? {} : { step: answer.step }),
    ...(read.request.route === undefined ? {} : { route: read.request.route }),
  });
  return { kind: 'receipt', receipt: answer };
}

interface Held {
  readonly reason: string;
  readonly detail: JsonObject;
}

/** A receipt that verified, for a call that the route's own limits hold back. */
function heldBack(answer: ToolReceipt, held: Held): ToolReceipt {
  const { reason, detail } = held;
  return { ...answer, decision: 'refuse', resend: false, reason, reasons: [reason], detail };
}
