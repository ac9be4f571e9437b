import type { Statement } from 'better-sqlite3';
import { addDecimals, fromMicros, isOver, subtractDecimals } from './decimal.ts';
import { OPCODES, type Value } from './lower.ts';
import type { Ground, Handler } from './sqlite-ground.ts';
import { Numbered } from './sqlite-numbered.ts';

/** How many windows' sums are remembered before that starts anew. */
const REMEMBERED = 100_000;

/** Limits: a bucket of a period has one counter; a sliding one has none, its holds in the window are added up. */
export function makeLimitOperations({ db, forget }: Ground): Record<number, Handler> {
  const counter: Statement<unknown[], [string, string, number]> = db
    .prepare<unknown[], [string, string, number]>('SELECT settled, held, until_ms FROM counters WHERE bucket = ?')
    .raw();
  const insertCounter = db.prepare(
    "INSERT INTO counters (bucket, settled, held, until_ms, sid) VALUES (?, '0', ?, ?, ?)",
  );
  const setHeld = new Numbered(db, 'UPDATE counters SET held = ?2 WHERE bucket = ?1');
  const setHeldUntil = new Numbered(db, 'UPDATE counters SET held = ?2, until_ms = ?3 WHERE bucket = ?1');
  const setBoth = new Numbered(db, 'UPDATE counters SET held = ?2, settled = ?3 WHERE bucket = ?1');
  const held: Statement<unknown[], string> = db
    .prepare<unknown[], string>('SELECT amount FROM holds WHERE link = ? AND bucket = ?')
    .pluck();
  const insertHold = db.prepare(
    `INSERT INTO holds (bucket, link, amount, micros, at_ms, state, sliding, until_ms)
    VALUES (?, ?, ?, ?, ?, 'held', ?, ?) ON CONFLICT DO NOTHING`,
  );
  const growHold = new Numbered(
    db,
    `UPDATE holds SET amount = ?3, micros = micros + ?4, at_ms = ?5, state = 'held', until_ms = ?6
    WHERE bucket = ?1 AND link = ?2`,
  );
  const window: Statement<unknown[], [bigint, bigint]> = db
    .prepare<unknown[], [bigint, bigint]>(`SELECT coalesce(sum(micros), 0), count(*) - count(micros) FROM holds
      WHERE bucket = ? AND sliding = 1 AND at_ms >= ?`)
    .raw()
    .safeIntegers();
  const between: Statement<unknown[], bigint> = db
    .prepare<unknown[], bigint>(`SELECT coalesce(sum(micros), 0) FROM holds
      WHERE bucket = ? AND sliding = 1 AND at_ms >= ? AND at_ms < ?`)
    .pluck()
    .safeIntegers();
  const amounts: Statement<unknown[], string> = db
    .prepare<unknown[], string>('SELECT amount FROM holds WHERE bucket = ? AND sliding = 1 AND at_ms >= ?')
    .pluck();
  const heldBy: Statement<unknown[], [string, string, number]> = db
    .prepare<unknown[], [string, string, number]>(
      "SELECT bucket, amount, sliding FROM holds WHERE link = ? AND state = 'held'",
    )
    .raw();
  const settleHold = db.prepare("UPDATE holds SET state = 'settled' WHERE link = ? AND bucket = ?");
  const dropHold = db.prepare('DELETE FROM holds WHERE link = ? AND bucket = ?');

  // What a window came to when it was last looked at. A hold moves it on by what it adds and what has left the window
  // since, so that a limit of ten thousand an hour costs no more than one of ten.
  const sums = new Map<string, { sinceMs: number; micros: bigint }>();
  forget.push(() => sums.clear());

  function inWindow(bucket: string, sinceMs: number): string {
    const known = sums.get(bucket);
    if (known !== undefined && sinceMs >= known.sinceMs) {
      if (sinceMs > known.sinceMs) known.micros -= between.get(bucket, known.sinceMs, sinceMs) ?? 0n;
      known.sinceMs = sinceMs;
      return fromMicros(known.micros);
    }
    const [micros, others] = window.get(bucket, sinceMs) ?? [0n, 0n];
    if (others > 0n) return amounts.all(bucket, sinceMs).reduce(addDecimals, '0');
    if (sums.size >= REMEMBERED) sums.clear();
    sums.set(bucket, { sinceMs, micros });
    return fromMicros(micros);
  }

  function added(bucket: string, micros: Value | undefined, atMs: number): void {
    const known = sums.get(bucket);
    if (known === undefined) return;
    if (typeof micros !== 'number') sums.delete(bucket);
    else if (atMs >= known.sinceMs) known.micros += BigInt(micros);
  }

  function end(link: Value | undefined, settles: boolean): undefined {
    for (const [bucket, amount, sliding] of heldBy.all(link)) {
      if (sliding === 1) {
        (settles ? settleHold : dropHold).run(link, bucket);
        if (!settles) sums.delete(bucket);
        continue;
      }
      const [settled, stillHeld] = counter.get(bucket) ?? ['0', amount, 0];
      setBoth.run(bucket, subtractDecimals(stillHeld, amount), settles ? addDecimals(settled, amount) : settled);
      dropHold.run(link, bucket);
    }
    return undefined;
  }

  return {
    [OPCODES.hold]: (v, i) => {
      const [link, micros, atMs, sinceMs, untilMs] = [v[i + 1], v[i + 3], v[i + 5], v[i + 6], v[i + 7]];
      const bucket = String(v[i]);
      const amount = String(v[i + 2]);
      const max = String(v[i + 4]);
      const sliding = sinceMs !== null;
      const counted = sliding ? undefined : counter.get(bucket);
      const before = sliding
        ? inWindow(bucket, Number(sinceMs))
        : addDecimals(counted?.[0] ?? '0', counted?.[1] ?? '0');
      if (isOver(addDecimals(before, amount), max)) return 'limit_reached';
      if (!sliding) {
        const nowHeld = addDecimals(counted?.[1] ?? '0', amount);
        if (counted === undefined) insertCounter.run(bucket, nowHeld, untilMs, v[i + 8]);
        else if (counted[2] < Number(untilMs)) setHeldUntil.run(bucket, nowHeld, untilMs);
        else setHeld.run(bucket, nowHeld);
      }
      if (insertHold.run(bucket, link, amount, micros, atMs, Number(sliding), untilMs).changes > 0) {
        added(bucket, micros, Number(atMs));
        return undefined;
      }
      sums.delete(bucket);
      const already = held.get(link, bucket) ?? '0';
      growHold.run(bucket, link, addDecimals(already, amount), micros, atMs, untilMs);
      return undefined;
    },
    [OPCODES.settle_holds]: (v, i) => end(v[i], true),
    [OPCODES.release_holds]: (v, i) => end(v[i], false),
  };
}
