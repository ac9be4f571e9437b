import { performance } from 'node:perf_hooks';
import type { Snapshot } from '../../policy/call.ts';
import { reasonCode } from '../../policy/reasons.ts';
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
import { makeClaim, replayClaim } from './claims.ts';
import { commitFor } from './commit-for.ts';
import { KEY_IN_FLIGHT, SESSION_BUSY, TOO_MANY_SESSIONS } from './problems.ts';
import { forAgent, type ReadCall } from './read-call.ts';
import { readReceiptFacts } from './receipt-facts.ts';
import { enforceBeforeSending } from './receipt-limits.ts';
import { answerRepeat } from './repeat.ts';
import { holdsOf } from './usage.ts';

/** What a receipt leads to: a call to send, a refusal, the stored answer of the first send, or a fault. */
export type Admitted = Allowed | EnforceAnswer;

const MAX_ATTEMPTS = 8;

/** The value that a request brings as its receipt: apart from the call, or as the carried history of a receipt route. */
function receiptOf(read: ReadCall): ReadCall['request']['receipt'] {
  return read.request.receipt ?? read.request.members.history;
}

/**
 * Admits a call by its receipt (docs/formats.md, "Receipts"), spending it in the commit that claims the call. With
 * `spend: false` nothing is written but the decision's line.
 */
export async function admitReceipt(gateway: Gateway, asked: ReadCall, spend: boolean): Promise<Admitted> {
  const read = asReceiptAgent(asked);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    // Another call with the same key may have been what came first.
    const repeated = attempt === 0 ? undefined : await answerRepeat(gateway, read);
    if (repeated !== undefined) return repeated;
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
  const session = await gateway.sessions.findNow(key);
  const link = encodeBase64url(found.link);
  const claim = await gateway.store.findClaim({ link });
  const tool = read.tool;
  const known = await readReceiptFacts(gateway, read, found, { session, claim, own });
  const evaluated = evaluateReceipt(gateway.crypto, found, call, known.facts);
  // A step before that is another than was admitted is a second line, too: its issuer has signed both.
  const { fault } = evaluated.answer.detail;
  if (fault === 'forked' || fault === 'link') await freeze(gateway, read, found, session);
  if (evaluated.handling === 'refuse' || tool === undefined) return tell(gateway, read, evaluated.answer);
  const counts = claim === undefined ? !own : claim.state === 'failed';
  const enforced = await enforceBeforeSending(gateway, read, tool, { session, name: history.session, own, counts });
  if ('held' in enforced) return tell(gateway, read, heldBack(evaluated.answer, enforced.held));
  const ended = endedRun(found, session);
  if (ended !== undefined && evaluated.handling !== 'replay') {
    return tell(gateway, read, heldBack(evaluated.answer, { reason: 'run_ended', detail: { run: ended } }));
  }
  // Whoever asks without sending is told what the receipt is worth; what became of the first send is not theirs to repeat.
  if (!spend || (request.purpose === 'decide' && evaluated.handling !== 'send')) {
    return tell(gateway, read, evaluated.answer);
  }
  if (evaluated.handling === 'wait') return { kind: 'problem', problem: KEY_IN_FLIGHT };
  if (evaluated.handling === 'replay' && claim !== undefined) {
    const replayed = await replayClaim(gateway, read, claim);
    return replayed.kind === 'problem' ? replayed : { ...replayed, receipt: evaluated.answer };
  }
  const place = placeOf(found, key, session, link, own);
  const holds = counts && loaded.receipts.enforce.has('limits') ? enforced : undefined;
  const answers = enforced.snapshot.answers ?? [];
  const checkMs = performance.now() - startedAt;
  request.span?.checked(startedAt);
  const { undoneLink } = known;
  return claimIt(gateway, read, { evaluated, tool, place, claim, session, holds, answers, checkMs, undoneLink });
}

/** The run of a forward call that takes no more of them. */
function endedRun({ entry }: VerifiedReceipt, session: Session | undefined): string | undefined {
  if (entry.run === undefined || entry.undoes !== undefined || session === undefined) return undefined;
  return runOf(session.record.view, entry.run)?.ended === true ? entry.run : undefined;
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
  const now = gateway.now();
  const opening = admission.session === undefined ? openFor(gateway, read, admission.place.key) : undefined;
  const place: Place = { ...admission.place, sid: admission.place.sid ?? opening?.record.sid ?? '' };
  const made = makeClaim(gateway, read, tool, place, admission.undoneLink);
  const { resend } = evaluated.answer;
  // A read that is sent again does nothing that a claim would have to keep from being done twice.
  const claim = resend && !tool.writes ? undefined : claimAfter(gateway, read, before, made);
  const flight = read.request.purpose === 'forward' ? claim : undefined;
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
  const untilMs = now + 2 * (read.loaded.receipts.maxAgeMs + SKEW_MS);
  const operations: readonly Operation[] = [
    ...(opening === undefined ? [] : [opening.operation]),
    ...(resend
      ? []
      : ([
          { op: 'spend_receipt', key: { issuer, caller, session, step: place.step }, link: place.link, untilMs },
        ] as const)),
    ...(claim === undefined ? [] : claimOperations(gateway, read, before, claim)),
    ...touchRun(place, opening?.record ?? admission.session?.record, now),
    ...reservationsOf(read, admission, place.link),
    { op: 'outbox', replica: gateway.audit.replica, n: line.n, line: line.line },
  ];
  if (flight !== undefined) gateway.flights.begin(flight.link);
  const result = await commitOrAbandon(gateway, read, operations, line).catch((error: unknown) => {
    if (flight !== undefined) gateway.flights.end(flight.link);
    throw error;
  });
  if (!result.ok) {
    if (flight !== undefined) gateway.flights.end(flight.link);
    if (result.conflict === 'too_many_sessions') return { kind: 'problem', problem: TOO_MANY_SESSIONS };
    if (admission.session !== undefined) gateway.sessions.forget(admission.session.record);
    return 'moved';
  }
  if (opening !== undefined) gateway.sessions.keep(opening.record);
  gateway.metrics.decided(tool.id, 'allow', reasonCode(evaluated.answer.reason));
  gateway.metrics.checkTook(admission.checkMs);
  return {
    kind: 'allowed',
    read,
    tool,
    place,
    receipt: evaluated.answer,
    answers: admission.answers,
    ...(claim === undefined ? {} : { claim }),
    ...(before === undefined && !resend ? {} : { again: true }),
    line,
  };
}

/** The claim as it stands once the receipt is spent. */
function claimAfter(gateway: Gateway, read: ReadCall, before: ClaimRecord | undefined, made: ClaimRecord): ClaimRecord {
  if (before === undefined) return made;
  if (read.request.purpose === 'decide') return before;
  const { settledAtMs: _settled, why: _why, ...open } = before;
  const fence = before.fence + 1;
  return { ...open, runBy: 'gateway', state: 'sending', fence, owner: gateway.replica, request: read.canonical };
}

function claimOperations(
  gateway: Gateway,
  read: ReadCall,
  before: ClaimRecord | undefined,
  claim: ClaimRecord,
): readonly Operation[] {
  if (before === undefined) return [{ op: 'claim', claim }];
  if (read.request.purpose === 'decide') return [];
  const { link, fence, state } = before;
  const atMs = gateway.now();
  const taken = {
    owner: gateway.replica,
    leaseUntilMs: atMs + gateway.leaseMs,
    atMs,
    request: read.canonical,
  } as const;
  return [{ op: 'retake_claim', link, fence, from: [state], ...taken }];
}

/** The commit fails where the run was marked failed meanwhile. */
function touchRun(place: Place, session: Session['record'] | undefined, updatedAtMs: number): readonly Operation[] {
  const { run, undoes, own, agent } = place;
  if (!own || run === undefined || undoes !== undefined || session === undefined) return [];
  const { caller, sid } = session;
  return [{ op: 'touch_run', run: { caller, run, sid, agent, state: 'open', updatedAtMs }, from: ['open'] }];
}

function reservationsOf(read: ReadCall, { holds }: Admission, link: string): readonly Operation[] {
  return holds === undefined ? [] : holdsOf(read.loaded, holds.verdict, read, holds.snapshot, link);
}

async function commitOrAbandon(
  gateway: Gateway,
  read: ReadCall,
  operations: readonly Operation[],
  line: ReturnType<Gateway['audit']['prepare']>,
): Promise<{ readonly ok: true } | Conflict> {
  try {
    const result = await commitFor(gateway, read, operations);
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
  gateway.metrics.decided(read.tool?.id, answer.decision, reasonCode(answer.reason));
  return { kind: 'receipt', receipt: answer };
}

/** A receipt that verified, for a call that the route's own limits hold back. */
function heldBack(answer: ToolReceipt, held: { readonly reason: string; readonly detail: JsonObject }): ToolReceipt {
  const { reason, detail } = held;
  return { ...answer, decision: 'refuse', resend: false, reason, reasons: [reason], detail };
}
