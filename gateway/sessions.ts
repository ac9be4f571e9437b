import { LRUCache } from 'lru-cache';
import { decodeBase64url, encodeBase64url } from '../receipts/base64url.ts';
import type { Crypto } from '../receipts/crypto.ts';
import { HISTORY_FORMAT, type HistoryHeader } from '../receipts/history.ts';
import { genesisLink } from '../receipts/history-links.ts';
import { advance } from './session-reports.ts';
import type { Operation, SessionKey, SessionRecord, StepRecord, Store } from './store/port.ts';

/** A session in memory: its row as last seen, and what is computed once from it. */
export interface Session {
  readonly record: SessionRecord;
  readonly nonce: Uint8Array;
  readonly genesis: Uint8Array;
  /** Link of the newest entry; the genesis before the first. */
  readonly headLink: Uint8Array;
  /** Not in the store yet: the commit that appends its first entry opens it. */
  readonly isNew: boolean;
  /** Its key as one text: what it is looked up by. */
  readonly name: string;
}

/** Where a session is in memory; the look-up finds this, so that a session that goes on need not be looked up again. */
interface Seat {
  session: Session;
}

/**
 * Sessions in memory, and the line that calls of one session stand in. What is here is a copy: each commit says which
 * version of the row it saw, so a stale copy makes a conflict, is forgotten, and read anew.
 */
export class Sessions {
  readonly #store: Store;
  readonly #crypto: Crypto;
  readonly #live: LRUCache<string, Seat>;
  readonly #lines = new Map<string, Promise<unknown>>();
  readonly #behind = new Map<string, Behind>();
  readonly #later: (operations: readonly Operation[]) => void;
  #timer: NodeJS.Timeout | undefined;

  /** `later` commits in order with everything else and waits for nothing. */
  constructor(store: Store, crypto: Crypto, max: number, later: (operations: readonly Operation[]) => void) {
    this.#store = store;
    this.#crypto = crypto;
    this.#live = new LRUCache({ max });
    this.#later = later;
  }

  /** How many are in memory. */
  get size(): number {
    return this.#live.size;
  }

  /** Runs `work` when every earlier call of the session has been decided. Throws what `work` throws. */
  async inLine<T>(key: SessionKey, work: () => Promise<T>): Promise<T> {
    const name = nameOf(key);
    const before = this.#lines.get(name);
    const turn = before === undefined ? work() : before.then(work, work);
    this.#lines.set(name, turn);
    try {
      return await turn;
    } finally {
      if (this.#lines.get(name) === turn) this.#lines.delete(name);
    }
  }

  /** The session of a key, from memory or the store; `undefined` where this caller has none of that name. */
  async find(key: SessionKey): Promise<Session | undefined> {
    const name = nameOf(key);
    this.#flush(name);
    const live = this.#live.get(name);
    if (live !== undefined) return live.session;
    const record = await this.#store.findSession(key);
    return record === undefined ? undefined : this.keep(record);
  }

  /**
   * As `find`, for what no commit of a version holds to: where other replicas write too, the store is asked, since the
   * copy in memory may be behind.
   */
  async findNow(key: SessionKey): Promise<Session | undefined> {
    if (this.#store.kind !== 'sqlite') this.forget(key);
    return this.find(key);
  }

  /** As `find`, for a call that need not have the store up to date: entries that ride along stay in memory. */
  async findRiding(key: SessionKey): Promise<Session | undefined> {
    return this.#riding(nameOf(key)) ?? this.find(key);
  }

  /** The session of a key where it is in memory and nobody is in its line: whoever has it can go on with it at once. */
  atHand(key: SessionKey): Session | undefined {
    const name = nameOf(key);
    return this.#lines.has(name) ? undefined : this.#riding(name);
  }

  /** As `atHand`, of a session that was at hand before. */
  stillAtHand(name: string): Session | undefined {
    return this.#lines.has(name) ? undefined : this.#riding(name);
  }

  #riding(name: string): Session | undefined {
    return this.#live.get(name)?.session ?? this.#behind.get(name)?.session;
  }

  /** Takes an entry that nobody waits for: it goes to the store with others of its session, a moment later. */
  ride(before: Session, record: SessionRecord, entry: StepRecord, link: Uint8Array): void {
    const session = this.#seat({ ...before, record: { ...record, version: before.record.version }, headLink: link });
    this.#behindOf(session).operations.push({ op: 'append_entry', sid: record.sid, entry });
  }

  /**
   * What became of an entry that rode along. The next entry's link freezes what was reported before it and no more
   * (docs/formats.md), and the store tells by the order of operations which that was: only the newest entry may take its
   * report into its own row.
   */
  rideReport(before: Session, record: SessionRecord, report: StepOutcome): void {
    const session = this.#seat({ ...before, record: { ...record, version: before.record.version } });
    const { sid } = record;
    const { operations } = this.#behindOf(session);
    const last = operations.at(-1);
    if (last?.op === 'append_entry' && last.entry.step === report.step)
      operations[operations.length - 1] = { ...last, entry: { ...last.entry, outcome: report.outcome, seen: true } };
    else operations.push({ op: 'report_step', sid, seen: true, ...report });
  }

  /** What of a session is to go to the store, with the session as it now is. */
  #behindOf(session: Session): Behind {
    let behind = this.#behind.get(session.name);
    if (behind === undefined) {
      behind = { session, operations: [] };
      this.#behind.set(session.name, behind);
      this.#timer ??= setTimeout(() => this.flushAll(), BEHIND_MS).unref();
    } else behind.session = session;
    return behind;
  }

  /** Sends to the store all that rides along. */
  flushAll(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const name of [...this.#behind.keys()]) this.#flush(name);
  }

  #flush(name: string): void {
    const behind = this.#behind.get(name);
    if (behind === undefined) return;
    this.#behind.delete(name);
    const { record } = behind.session;
    this.#later([advance(record, record), ...behind.operations]);
    this.#seat({ ...behind.session, record: { ...record, version: record.version + 1 } });
  }

  /** Takes a row, new or changed, into memory. */
  keep(record: SessionRecord, before?: Session): Session {
    return this.#seat(this.wake(record, false, before));
  }

  #seat(session: Session): Session {
    const seat = this.#live.get(session.name);
    if (seat === undefined) this.#live.set(session.name, { session });
    else seat.session = session;
    return session;
  }

  /** A session from its row, without keeping it. */
  wake(record: SessionRecord, isNew: boolean, before?: Session): Session {
    const nonce = before?.nonce ?? bytes(record.nonce, 16);
    const genesis = before?.genesis ?? genesisLink(this.#crypto, headerOf(record));
    const headLink = record.head ? bytes(record.head.link, 32) : genesis;
    return { record, nonce, genesis, headLink, isNew, name: before?.name ?? nameOf(record) };
  }

  /** Forgets a copy that turned out to be stale. */
  forget(key: SessionKey): void {
    const name = nameOf(key);
    this.#flush(name);
    this.#live.delete(name);
  }

  /** Forgets the copies of a caller: after a commit of which nobody can tell. */
  forgetOf(caller: string): void {
    for (const [name, { session }] of this.#live.entries()) {
      if (session.record.caller !== caller) continue;
      this.#flush(name);
      this.#live.delete(name);
    }
  }

  /** Forgets every copy: after the store lost what was not yet stored. */
  forgetAll(): void {
    this.#behind.clear();
    this.#live.clear();
  }
}

/** How long an entry that nobody waits for may ride along before it goes to the store, in milliseconds. */
const BEHIND_MS = 100;

/** What of a session is in memory alone. */
interface Behind {
  session: Session;
  /** Entries and reports, in the order in which they came to be. */
  readonly operations: Operation[];
}

interface StepOutcome {
  readonly step: number;
  readonly outcome: string;
}

/** The five members under every link of the session. */
export function headerOf(record: SessionRecord): HistoryHeader {
  const { session, issuer, audience, nonce } = record;
  return { format: HISTORY_FORMAT, session, issuer, audience, nonce };
}

/** A row for a session that is about to be opened. */
export function newSession(
  key: SessionKey,
  made: Pick<SessionRecord, 'mode' | 'audience' | 'view'>,
  random: (length: number) => Uint8Array,
  nowMs: number,
): SessionRecord {
  return {
    ...key,
    ...made,
    sid: encodeBase64url(random(16)),
    nonce: encodeBase64url(random(16)),
    headReport: {},
    lateReports: [],
    version: 0,
    openedAtMs: nowMs,
    usedAtMs: nowMs,
  };
}

function nameOf(key: SessionKey): string {
  // A NUL stands in no name, so two keys never share a line.
  return `${key.issuer}\0${key.caller}\0${key.session}`;
}

function bytes(text: string, length: number): Uint8Array {
  const decoded = decodeBase64url(text, length);
  if (decoded === undefined) throw new Error('a session row of the store holds a link that is not base64url');
  return decoded;
}
