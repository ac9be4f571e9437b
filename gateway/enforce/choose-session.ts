import { carryOver, EMPTY_CARRIED, openView } from '../../policy/session.ts';
import { encodeBase64url } from '../../receipts/base64url.ts';
import {
  type Entry,
  entryReport,
  HistoryFault,
  type LateReport,
  type Outcome,
  type Report,
} from '../../receipts/history.ts';
import { compareHead, historyHead } from '../../receipts/history-head.ts';
import { parseHistory } from '../../receipts/history-parse.ts';
import { contradictsReport } from '../../receipts/history-reports.ts';
import { type VerifiedHistory, verifyHistory } from '../../receipts/history-verify.ts';
import type { Gateway } from '../gateway.ts';
import { type Effects, effectsOf } from '../runs/outcome-effects.ts';
import { newSession, type Session } from '../sessions.ts';
import type { ClaimRecord, SessionKey, SessionRecord } from '../store/port.ts';
import type { ReadCall } from './read-call.ts';
import { mayRideAlong } from './ride-along.ts';

/** The session that a request asks for, before anything is read from the store. */
export interface SessionChoice {
  readonly key: SessionKey;
  readonly mode: 'held' | 'carried';
  /** The caller gave no name, or asks to begin: a session of that name is not looked for. */
  readonly fresh: boolean;
  /** A carried history that verified. */
  readonly carried?: VerifiedHistory;
  /** What is wrong with the carried history. */
  readonly fault?: HistoryFault;
}

/** Settles which session a request is of, verifying what it carries (docs/formats.md). */
export function chooseSession(gateway: Gateway, read: ReadCall): SessionChoice {
  const { request, loaded } = read;
  const { session, history } = request.members;
  const keyOf = (name: string): SessionKey => ({
    issuer: loaded.issuer,
    caller: request.caller.name,
    session: name,
  });
  const made = (): string => encodeBase64url(gateway.random(16));
  if (history === undefined) return { key: keyOf(session ?? made()), mode: 'held', fresh: session === undefined };
  let named = session;
  try {
    const parsed = parseHistory(history);
    if (parsed.kind === 'opening') {
      named = parsed.session ?? session;
      if (session !== undefined && named !== session) {
        throw new HistoryFault('session', 0, 'the history is of another session than the call names');
      }
      return { key: keyOf(named ?? made()), mode: 'carried', fresh: named === undefined };
    }
    if (parsed.kind === 'cut') {
      throw new HistoryFault('format', 0, 'a check needs the whole history; only a receipt may be cut');
    }
    named = parsed.history.session;
    const carried = verifyHistory(parsed.history, {
      crypto: gateway.crypto,
      now: gateway.now(),
      audience: loaded.audience,
      issuers: loaded.checkIssuers,
      cache: gateway.verified,
      ...(session === undefined ? {} : { session }),
    });
    return { key: keyOf(named), mode: 'carried', fresh: false, carried };
  } catch (error) {
    if (!(error instanceof HistoryFault)) throw error;
    return { key: keyOf(named ?? made()), mode: 'carried', fresh: named === undefined, fault: error };
  }
}

/** The session to decide in, or why no session is touched. */
export type OpenedSession =
  | {
      readonly kind: 'session';
      readonly session: Session;
      /** What the next link says of the newest entry. */
      readonly prevReport: Report;
      /** What a carried history newly reports of it. */
      readonly adopted?: LateReport;
      /** The entry that it is of. */
      readonly adoptedTool?: Pick<Entry, 'tool' | 'run' | 'undoes'>;
      /** Its claim: the caller runs it itself. */
      readonly adoptedClaim?: ClaimRecord;
      /** What follows from it for the run of its step, where it is believed. */
      readonly effects?: Effects;
      /** Whether this caller is believed for it: a host is, for calls that it ran itself. */
      readonly believed: boolean;
      /** The session of which a second line was seen; it is frozen, whatever becomes of the call. */
      readonly forked?: SessionRecord;
      /** What is known of it and the carried history does not say. */
      readonly late?: LateReport;
      readonly fault?: HistoryFault;
    }
  /** A genuine history of somebody else: nothing changes anywhere. */
  | { readonly kind: 'foreign'; readonly fault: HistoryFault };

/**
 * Finds or begins the session of a choice. A history that is at fault begins a new session under a new name, with what
 * its caller carries over; the old one's head stays where it is.
 */
export async function openSession(gateway: Gateway, read: ReadCall, choice: SessionChoice): Promise<OpenedSession> {
  const found = choice.fresh ? undefined : await findFor(gateway, read, choice);
  if (choice.fault !== undefined) return restart(gateway, read, choice, choice.fault);
  if (found === undefined) {
    if (choice.carried !== undefined) {
      return { kind: 'foreign', fault: new HistoryFault('session', 0, 'the history is of no session of this caller') };
    }
    const carried = read.request.caller.host ? EMPTY_CARRIED : await carriedOf(gateway, read);
    return begin(gateway, read, choice.key, choice.mode, openView(carried));
  }
  const fault = await faultOf(gateway, found, choice);
  if (fault !== undefined) {
    const restarted = await restart(gateway, read, choice, fault);
    const isNews = fault.fault === 'forked' && found.record.frozen === undefined && restarted.kind === 'session';
    if (isNews) await recordFork(gateway, read, found.record, choice);
    return isNews ? { ...restarted, forked: found.record } : restarted;
  }
  const known = reportOf(found.record.headReport);
  const last = choice.carried?.history.entries.at(-1);
  const believed = read.request.caller.host;
  if (last === undefined) return { kind: 'session', session: found, prevReport: known, believed };
  const carried = entryReport(last);
  const step = last.step;
  if (known.outcome === undefined && carried.outcome !== undefined) {
    // Nobody but the gateway says what became of a call that the gateway forwards; a read has no claim to tell by.
    const claim = await gateway.store.findClaim({ link: found.record.head?.link ?? '' });
    const [kept] = await gateway.store.findSteps(found.record.sid, [step]);
    if (claim?.runBy === 'host' || (claim === undefined && kept?.forwarded === false)) {
      const adopted = { step, ...carried, outcome: carried.outcome };
      const effects = believed ? { effects: await adoptedEffects(gateway, found, last, carried.outcome) } : {};
      return {
        kind: 'session',
        session: found,
        prevReport: carried,
        adopted,
        adoptedTool: last,
        believed,
        ...(claim === undefined ? {} : { adoptedClaim: claim }),
        ...effects,
      };
    }
  }
  if (contradictsReport(known, carried)) {
    return restart(gateway, read, choice, new HistoryFault('outcome', step, 'the gateway saw another outcome'));
  }
  const more = known.outcome !== undefined && known.outcome !== carried.outcome;
  const late = more ? { late: { step, ...known, outcome: known.outcome } } : {};
  return { kind: 'session', session: found, prevReport: carried, believed, ...late };
}

/**
 * The session that a call goes on in, where that is known without waiting: a held one in memory with nobody in its line,
 * for a call that need not have the store up to date. What `openSession` would find of it.
 */
export function sessionAtHand(
  gateway: Gateway,
  read: ReadCall,
  { key, mode, fresh, fault }: SessionChoice,
): Extract<OpenedSession, { kind: 'session' }> | undefined {
  if (fresh || mode !== 'held' || fault !== undefined) return undefined;
  const session = gateway.sessions.atHand(key);
  if (session === undefined || session.record.mode !== 'held' || session.record.frozen !== undefined) return undefined;
  const prevReport = reportOf(session.record.headReport);
  return { kind: 'session', session, prevReport, believed: read.request.caller.host };
}

/**
 * What a carried history is held against must be the store's own row: a copy that another replica has gone on from would
 * make an honest history a fork. A held one is held to its version by the commit.
 */
function findFor(gateway: Gateway, read: ReadCall, { key, mode }: SessionChoice): Promise<Session | undefined> {
  const { sessions } = gateway;
  if (mode === 'carried') return sessions.findNow(key);
  return mayRideAlong(gateway, read) ? sessions.findRiding(key) : sessions.find(key);
}

function adoptedEffects(gateway: Gateway, session: Session, entry: Entry, outcome: Outcome): Promise<Effects> {
  const { step, run, undoes } = entry;
  return effectsOf(gateway, session, {
    step,
    tool: gateway.loaded.catalogue.tools.get(entry.tool),
    outcome,
    late: true,
    ...(run === undefined ? {} : { run }),
    ...(undoes === undefined ? {} : { undoes }),
  });
}

/** What the store's row says against the choice. */
async function faultOf(gateway: Gateway, found: Session, choice: SessionChoice): Promise<HistoryFault | undefined> {
  const { record } = found;
  if (record.frozen !== undefined) {
    return new HistoryFault('forked', record.head?.step ?? 0, 'the session is frozen: two lines of it were seen');
  }
  if (choice.carried === undefined) {
    const opens = choice.mode === record.mode && (choice.mode === 'held' || record.head === undefined);
    return opens ? undefined : new HistoryFault('dropped', 0, 'the session goes on from a history that was not sent');
  }
  const own = choice.carried.history.entries.at(-1)?.step;
  const kept = own === undefined ? [] : await gateway.store.findSteps(record.sid, [own]);
  const stands = compareHead(choice.carried, record.head, () => kept[0]?.link);
  if (stands === 'same') return undefined;
  if (stands === 'dropped') return new HistoryFault('dropped', own ?? 0, 'the session has gone on from this point');
  return new HistoryFault('forked', own ?? 0, 'the session has another line');
}

/** Both heads go into the audit log: two signed lines of one session are evidence against whoever made them. */
async function recordFork(
  gateway: Gateway,
  read: ReadCall,
  known: SessionRecord,
  choice: SessionChoice,
): Promise<void> {
  const shown = choice.carried === undefined ? undefined : historyHead(choice.carried);
  const none = { step: -1, link: '' };
  await gateway.audit.append({
    event: 'fork',
    fault: 'forked',
    session: known.session,
    caller: known.caller,
    tool: read.call.tool,
    agent: read.agent,
    issuer: known.issuer,
    heads: [known.head ?? none, shown ?? none],
  });
}

async function restart(
  gateway: Gateway,
  read: ReadCall,
  choice: SessionChoice,
  fault: HistoryFault,
): Promise<OpenedSession> {
  const carried = await carriedOf(gateway, read);
  const key = { ...choice.key, session: encodeBase64url(gateway.random(16)) };
  const opened = begin(gateway, read, key, choice.mode, openView(carried));
  return opened.kind === 'session' ? { ...opened, fault } : opened;
}

async function carriedOf(gateway: Gateway, read: ReadCall): Promise<SessionRecord['view']['carried']> {
  const { loaded, request } = read;
  const since = gateway.now() - loaded.sessions.carryMs;
  return carryOver(await gateway.store.viewsOfCaller(loaded.issuer, request.caller.name, since));
}

function begin(
  gateway: Gateway,
  read: ReadCall,
  key: SessionKey,
  mode: 'held' | 'carried',
  view: SessionRecord['view'],
): OpenedSession {
  const made = { mode, audience: read.loaded.audience, view };
  const record = newSession(key, made, gateway.random, gateway.now());
  return { kind: 'session', session: gateway.sessions.wake(record, true), prevReport: {}, believed: false };
}

function reportOf(report: { readonly outcome?: string; readonly result?: string }): Report {
  const { outcome, result } = report;
  if (outcome !== 'ran' && outcome !== 'failed' && outcome !== 'outcome_unknown' && outcome !== 'compensated') {
    return {};
  }
  return result === undefined ? { outcome } : { outcome, result };
}
