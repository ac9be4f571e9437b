import { setTimeout as wait } from 'node:timers/promises';
import type { PublicKey } from '../../receipts/crypto.ts';
import { ChainCheck, type LineFault } from './chain-check.ts';
import type { ChainHead } from './chain-lines.ts';
import { systemCode } from './fault.ts';
import { LineReader } from './read-lines.ts';
import { parseChainLine } from './tail.ts';

export interface VerifyOptions {
  /** Keys that may have signed; without one a log can be shown to be tampered with, but not to be intact. */
  readonly keys?: readonly PublicKey[];
  /** A line's place and hash that were noted outside of the gateway's reach. */
  readonly anchor?: ChainHead;
  /** How long to wait for the next checkpoint of a log that is being written. 0 by default. */
  readonly settleMs?: number;
}

/** What is to be said of a log; names as `--json` prints them. */
export interface AuditReport {
  readonly verdict: 'intact' | 'tampered' | 'cannot_tell';
  /** In a sentence, why. */
  readonly why: string;
  readonly replica?: string;
  readonly lines: number;
  readonly first_seq?: number;
  readonly last_seq?: number;
  /** Hash of the last line: what an anchor for this log would hold. */
  readonly last_hash?: string;
  readonly checkpoints: number;
  /** The newest line that a signature, or the anchor, vouches for. */
  readonly signed_to?: number;
  readonly signed_at?: string;
  /** Where the first fault is. */
  readonly fault?: LineFault & { readonly file: string; readonly line: number };
}

export interface VerifyResult {
  /** 0 intact, 1 tampered with, 2 cannot tell. */
  readonly exit: 0 | 1 | 2;
  readonly report: AuditReport;
}

/**
 * Verifies the files of one chain: whether every line is there, in its place and as it was written, and how far the
 * gateway's signatures vouch for that. Reads each file once, a piece at a time. Never throws for what a file holds; a
 * file that cannot be read is `cannot_tell`.
 *
 * What no log can show by itself: that lines behind its last checkpoint were cut off with it. An anchor shows that.
 */
export async function verifyAudit(files: readonly string[], options: VerifyOptions = {}): Promise<VerifyResult> {
  const check = new ChainCheck(options.keys ?? [], options.anchor);
  let ordered: readonly string[];
  try {
    ordered = inChainOrder(files);
  } catch (error) {
    return cannotTell(check, `a file cannot be read: ${systemCode(error)}`);
  }
  let partial: string | undefined;
  const begun: FileStart[] = [];
  for (const [i, file] of ordered.entries()) {
    const isLast = i === ordered.length - 1;
    begun.push({ file, seq: (check.last?.seq ?? -1) + 1 });
    let read: { readonly fault?: LineFault; readonly line: number; readonly partial: boolean };
    try {
      read = await readFile(file, check, isLast ? (options.settleMs ?? 0) : 0);
    } catch (error) {
      return cannotTell(check, `\`${file}\` cannot be read: ${systemCode(error)}`);
    }
    // Before the first file nobody knows where the chain begins.
    if (i === 0) begun[0] = { file, seq: check.firstSeq ?? 0 };
    if (read.fault !== undefined) return tampered(check, read.fault, begun, read.line);
    if (read.partial && !isLast)
      return tampered(
        check,
        { fault: 'missing', seq: (check.last?.seq ?? -1) + 1, why: `\`${file}\` ends in the middle of a line` },
        begun,
        read.line + 1,
      );
    if (read.partial) partial = file;
    if (isLast) {
      const fault = check.end();
      if (fault !== undefined) return tampered(check, fault, begun, read.line);
    }
  }
  return conclude(check, options, partial);
}

/** Files by the place of their first line, so that it does not matter how a shell sorts them. */
function inChainOrder(files: readonly string[]): readonly string[] {
  if (files.length < 2) return files;
  const first = (file: string): number => {
    const reader = new LineReader(file);
    try {
      return parseChainLine(reader.next()?.text ?? '')?.seq ?? Number.POSITIVE_INFINITY;
    } finally {
      reader.close();
    }
  };
  return files
    .map((file) => ({ file, seq: first(file) }))
    .sort((a, b) => a.seq - b.seq)
    .map(({ file }) => file);
}

const LOOK_AGAIN_MS = 50;

async function readFile(
  file: string,
  check: ChainCheck,
  settleMs: number,
): Promise<{ readonly fault?: LineFault; readonly line: number; readonly partial: boolean }> {
  const reader = new LineReader(file);
  let line = 0;
  let untilMs: number | undefined;
  try {
    for (;;) {
      const read = reader.next();
      if (read !== undefined) {
        line++;
        const fault = check.take(read);
        if (fault !== undefined) return { fault, line, partial: false };
        // A log that is being written never ends; it is judged up to the first checkpoint behind its end.
        if (untilMs !== undefined && isSettled(check)) return { line, partial: false };
        continue;
      }
      untilMs ??= performance.now() + settleMs;
      if (isSettled(check) || check.inDoubt || performance.now() >= untilMs) break;
      await wait(LOOK_AGAIN_MS);
    }
    return { line, partial: reader.partial() !== undefined };
  } finally {
    reader.close();
  }
}

function isSettled(check: ChainCheck): boolean {
  return check.last !== undefined && check.signedTo?.seq === check.last.seq;
}

function conclude(check: ChainCheck, options: VerifyOptions, partial: string | undefined): VerifyResult {
  const { last, anchored, unproved } = check;
  if (last === undefined) return cannotTell(check, 'there is no line to verify');
  const vouchedTo = Math.max(check.signedTo?.seq ?? -1, anchored ? (options.anchor?.seq ?? -1) : -1);
  if (options.anchor !== undefined && !anchored)
    return cannotTell(check, `the files begin at line ${check.firstSeq}, behind the anchor; give the earlier ones too`);
  if (partial !== undefined)
    return cannotTell(
      check,
      `\`${partial}\` ends in the middle of a line: it is being written, was cut, or its writer crashed`,
      vouchedTo,
    );
  if (vouchedTo === last.seq)
    return { exit: 0, report: { verdict: 'intact', why: intact(check), ...facts(check, vouchedTo) } };
  if (unproved !== undefined && unproved.seq > vouchedTo) {
    const given = (options.keys ?? []).length > 0;
    return cannotTell(
      check,
      `the chain fits together, but ${given ? 'another key' : 'no key'} was given to verify its checkpoints with; they are signed with the key \`${unproved.keyId}\``,
      vouchedTo,
    );
  }
  if (vouchedTo < 0) return cannotTell(check, 'the chain fits together, but no checkpoint is in it');
  return cannotTell(
    check,
    `line ${vouchedTo + 1} to line ${last.seq} stand behind the last checkpoint: they fit together, but no signature covers them`,
    vouchedTo,
  );
}

function intact(check: ChainCheck): string {
  const begin = check.firstSeq === 0 ? '' : `, from line ${check.firstSeq} on (earlier files were not given)`;
  const signed = check.signedTime === undefined ? '' : `; the last checkpoint is of ${check.signedTime}`;
  return `every line is as it was written${begin}${signed}`;
}

/** A file and the place of its first line. */
interface FileStart {
  readonly file: string;
  readonly seq: number;
}

function tampered(check: ChainCheck, fault: LineFault, begun: readonly FileStart[], lastRead: number): VerifyResult {
  // Up to the fault every line stands one behind the other; only one that stands at a wrong place must be told by where it is.
  const start = fault.fault === 'out_of_order' ? undefined : begun.findLast(({ seq }) => seq <= fault.seq);
  const file = start?.file ?? begun.at(-1)?.file ?? '';
  const line = start === undefined ? lastRead : fault.seq - start.seq + 1;
  const report: AuditReport = {
    verdict: 'tampered',
    why: fault.why,
    ...facts(check, check.signedTo?.seq ?? -1),
    fault: { ...fault, file, line },
  };
  return { exit: 1, report };
}

function cannotTell(check: ChainCheck, why: string, vouchedTo = -1): VerifyResult {
  return { exit: 2, report: { verdict: 'cannot_tell', why, ...facts(check, vouchedTo) } };
}

function facts(check: ChainCheck, vouchedTo: number): Omit<AuditReport, 'verdict' | 'why' | 'fault'> {
  const { last, firstSeq, replica, signedTime } = check;
  return {
    ...(replica === undefined ? {} : { replica }),
    lines: check.lines,
    ...(firstSeq === undefined ? {} : { first_seq: firstSeq }),
    ...(last === undefined ? {} : { last_seq: last.seq, last_hash: last.hash }),
    checkpoints: check.checkpoints,
    ...(vouchedTo < 0 ? {} : { signed_to: vouchedTo }),
    ...(signedTime === undefined ? {} : { signed_at: signedTime }),
  };
}
