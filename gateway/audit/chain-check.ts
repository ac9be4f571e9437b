import { decodeBase64url } from '../../receipts/base64url.ts';
import type { PublicKey } from '../../receipts/crypto.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import { type ChainHead, checkpointMessage, keyIdOf, unsignedCheckpoint } from './chain-lines.ts';
import { draftObject, FORMAT, genesisOf, hashLine, placeDraft } from './line.ts';
import type { ReadLine } from './read-lines.ts';
import { type ChainLine, parseChainLine } from './tail.ts';

/** What is wrong with a line, in a word for scripts and in a sentence for people. */
export interface LineFault {
  readonly fault:
    | 'not_a_line'
    | 'changed'
    | 'missing'
    | 'out_of_order'
    | 'spliced'
    | 'checkpoint'
    | 'cut_before_start'
    | 'anchor'
    | 'cut_before_anchor';
  readonly seq: number;
  readonly why: string;
}

/** A checkpoint whose signature nobody could look at. */
export type Unproved = { readonly seq: number; readonly keyId: string };

/**
 * Judges the lines of one chain in order, each as it comes. It keeps the line before the one that is looked at, because
 * a hash that does not fit may be the fault of either, and only the next line tells which.
 */
export class ChainCheck {
  readonly #keys: ReadonlyMap<string, PublicKey>;
  readonly #anchor: ChainHead | undefined;
  #last: { readonly seq: number; readonly hash: string } | undefined;
  /** The line `seq` does not follow what stands before it; the next line tells which of the two was changed. */
  #doubt: { readonly seq: number; readonly hash: string } | undefined;
  firstSeq: number | undefined;
  replica: string | undefined;
  lines = 0;
  checkpoints = 0;
  signedTo: ChainHead | undefined;
  signedTime: string | undefined;
  anchored = false;
  unproved: Unproved | undefined;

  constructor(keys: readonly PublicKey[], anchor: ChainHead | undefined) {
    this.#keys = new Map(keys.map((key) => [keyIdOf(key.bytes), key]));
    this.#anchor = anchor;
  }

  get last(): ChainHead | undefined {
    return this.#last;
  }

  /** A hash does not fit, and the next line would tell whose fault it is. */
  get inDoubt(): boolean {
    return this.#doubt !== undefined;
  }

  /** One line in; what is wrong out, where something is. After a fault the check is over. */
  take(read: ReadLine): LineFault | undefined {
    const { text } = read;
    const line = read.broken ? undefined : parseChainLine(text);
    const at = this.#last === undefined ? 0 : this.#last.seq + 1;
    if (line === undefined) return this.#settleDoubt(undefined) ?? notALine(at);
    const doubted = this.#settleDoubt(line);
    if (doubted !== undefined) return doubted;
    const fault = this.#checkPlace(line);
    if (fault !== undefined) return fault;
    const hash = hashLine(text);
    if (this.#last !== undefined && line.prev !== this.#last.hash) {
      this.#doubt = { seq: line.seq, hash };
    } else {
      const wrong = this.#checkMembers(line, text, hash);
      if (wrong !== undefined) return wrong;
    }
    this.firstSeq ??= line.seq;
    this.#last = { seq: line.seq, hash };
    this.lines++;
    return undefined;
  }

  /** The end of the last file. */
  end(): LineFault | undefined {
    const doubted = this.#settleDoubt(undefined);
    if (doubted !== undefined) return doubted;
    const anchor = this.#anchor;
    if (anchor === undefined || this.anchored || this.#last === undefined) return undefined;
    if (anchor.seq <= this.#last.seq) return undefined;
    return {
      fault: 'cut_before_anchor',
      seq: this.#last.seq,
      why: `the log ends at seq ${this.#last.seq}, but the anchor was taken at seq ${anchor.seq}: lines were cut off`,
    };
  }

  #settleDoubt(next: ChainLine | undefined): LineFault | undefined {
    const doubt = this.#doubt;
    if (doubt === undefined) return undefined;
    const earlier = doubt.seq - 1;
    // The doubted line is as it was when the next one was written: then it is the one before that was changed.
    const seq = next?.prev === doubt.hash ? earlier : next === undefined ? earlier : doubt.seq;
    const also = next === undefined ? ` or line ${doubt.seq}, the last` : '';
    return {
      fault: 'changed',
      seq,
      why: `line ${seq}${also} was changed after it was written: line ${doubt.seq} names another hash for line ${earlier}`,
    };
  }

  #checkPlace(line: ChainLine): LineFault | undefined {
    const last = this.#last;
    if (last === undefined) return undefined;
    const { seq } = line;
    if (seq === last.seq + 1) return undefined;
    if (seq > last.seq)
      return {
        fault: 'missing',
        seq: last.seq + 1,
        why: `line ${seq} follows line ${last.seq}: lines between are missing`,
      };
    return {
      fault: 'out_of_order',
      seq,
      why: `line ${seq} stands behind line ${last.seq}: lines were moved or repeated`,
    };
  }

  #checkMembers(line: ChainLine, text: string, hash: string): LineFault | undefined {
    const { seq, event, members } = line;
    const replica = members['replica'];
    if (event === 'open' || event === 'checkpoint') {
      if (typeof replica !== 'string' || (this.replica !== undefined && replica !== this.replica))
        return {
          fault: 'spliced',
          seq,
          why: `line ${seq} is of replica \`${String(replica)}\`, the lines before it are not`,
        };
      this.replica = replica;
    }
    if (seq === 0 && (event !== 'open' || members['format'] !== FORMAT || line.prev !== genesisOf(String(replica))))
      return { fault: 'changed', seq, why: 'line 0 does not begin a chain of its replica' };
    if (event === 'open' && members['lost'] !== undefined)
      return {
        fault: 'cut_before_start',
        seq,
        why: `when the gateway was started at ${String(members['time'])}, the log ended before the line that it had reached: lines before line ${seq} were cut off or replaced`,
      };
    if (event === 'checkpoint') return this.#checkSignature(line, text, hash) ?? this.#checkAnchor(seq, hash);
    return this.#checkAnchor(seq, hash);
  }

  #checkSignature(line: ChainLine, text: string, hash: string): LineFault | undefined {
    const { seq, members } = line;
    const keyId = String(members['key']);
    const key = this.#keys.get(keyId);
    if (key === undefined) {
      this.unproved = { seq, keyId };
      return undefined;
    }
    if (!isSigned(line, text, key)) {
      const from = this.signedTo === undefined ? (this.firstSeq ?? seq) : this.signedTo.seq + 1;
      return {
        fault: 'checkpoint',
        seq,
        why: `the signature of the checkpoint in line ${seq} does not verify: it, or something from line ${from} on, is not what the gateway wrote`,
      };
    }
    this.checkpoints++;
    this.signedTo = { seq, hash };
    this.signedTime = String(members['time']);
    return undefined;
  }

  #checkAnchor(seq: number, hash: string): LineFault | undefined {
    const anchor = this.#anchor;
    if (anchor === undefined || anchor.seq !== seq) return undefined;
    this.anchored = true;
    if (anchor.hash === hash) return undefined;
    return {
      fault: 'anchor',
      seq,
      why: `line ${seq} has not the hash of the anchor: the log was rewritten up to there`,
    };
  }
}

function notALine(seq: number): LineFault {
  return { fault: 'not_a_line', seq, why: `what stands where line ${seq} should is no line of an audit log` };
}

function isSigned(line: ChainLine, text: string, key: PublicKey): boolean {
  // The members come from JSON.parse, so they are JSON.
  const members = line.members as JsonObject;
  const { prev: _, seq: __, ...rest } = members;
  // No hash covers the last line of a log, so the signature must cover it letter by letter: one spelling, no white space.
  if (placeDraft(draftObject(rest), line.seq, line.prev) !== text) return false;
  const signature = decodeBase64url(String(members['signature']), 64);
  if (signature === undefined) return false;
  return key.verify(checkpointMessage(unsignedCheckpoint(members)), signature);
}
