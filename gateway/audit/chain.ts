import type { SigningKey } from '../../receipts/crypto.ts';
import { type ChainHead, draftOpen, signCheckpoint } from './chain-lines.ts';
import { type Draft, genesisOf, hashLine, placeDraft } from './line.ts';
import type { Target } from './target.ts';

export interface ChainOptions {
  /** The gateway's signing key: signs checkpoints. */
  readonly signer: SigningKey;
  readonly maxSizeBytes: number;
  readonly checkpointLines: number;
  readonly checkpointMs: number;
  /** RFC 3339 in UTC. */
  readonly time: () => string;
  /** Every prepared line up to this number is in the log, once the given ones are too. */
  readonly floorWith: (lines: readonly Draft[]) => number;
  /** The highest number that was given to a line. */
  readonly prepared: () => number;
}

/**
 * The chain of one replica and the file that it is being written to. Nothing here runs twice at once: its caller waits
 * for each call before the next, but for `sync`, which may run beside writes.
 */
export class Chain {
  readonly #target: Target;
  readonly #options: ChainOptions;
  #head: ChainHead;
  #unsigned = 0;
  #syncing: Promise<unknown> = Promise.resolve();

  constructor(target: Target, options: ChainOptions) {
    this.#target = target;
    this.#options = options;
    this.#head = target.head ?? { seq: -1, hash: genesisOf(target.state.replica) };
  }

  get head(): ChainHead {
    return this.#head;
  }

  /** Lines that no checkpoint covers. */
  get unsigned(): number {
    return this.#unsigned;
  }

  /** Whether this many more lines make a checkpoint due. */
  isDue(lines: number): boolean {
    return this.#unsigned + lines >= this.#options.checkpointLines;
  }

  /** Begins a file, or this process's part of one. */
  async open(lost?: ChainHead): Promise<void> {
    const { checkpointLines, checkpointMs, time, floorWith, prepared } = this.#options;
    const draft = draftOpen({
      replica: this.#target.state.replica,
      time: time(),
      every: { lines: checkpointLines, ms: checkpointMs },
      written: floorWith([]),
      prepared: prepared(),
      ...(this.#head.seq < 0 ? {} : { previous: this.#head }),
      ...(lost === undefined ? {} : { lost }),
    });
    await this.write([draft], false);
  }

  /** Puts drafts at their places and appends them and, if asked, a checkpoint: all or none. Throws the system's error. */
  async write(drafts: readonly Draft[], checkpoint: boolean): Promise<void> {
    const signs = checkpoint && this.#unsigned + drafts.length > 0;
    if (drafts.length === 0 && !signs) return;
    let { seq, hash } = this.#head;
    let text = '';
    for (const draft of drafts) {
      const line = placeDraft(draft, ++seq, hash);
      hash = hashLine(line);
      text += `${line}\n`;
    }
    if (signs) {
      const { signer, time, floorWith } = this.#options;
      const place = { seq: ++seq, prev: hash, replica: this.#target.state.replica, time: time() };
      const line = signCheckpoint(place, floorWith(drafts), signer);
      hash = hashLine(line);
      text += `${line}\n`;
    }
    const sink = this.#target.sink();
    try {
      await sink.append(Buffer.from(text, 'utf8'));
    } catch (error) {
      // A stream cannot take back what it began: the chain will have these lines, although nobody relies on them.
      if (sink.owes()) this.#advance({ seq, hash }, drafts.length, signs);
      throw error;
    }
    this.#advance({ seq, hash }, drafts.length, signs);
  }

  #advance(head: ChainHead, lines: number, signed: boolean): void {
    this.#head = head;
    this.#unsigned = signed ? 0 : this.#unsigned + lines;
  }

  /** Meets what became of the file since the last write: moved, deleted, truncated, grown too large. */
  async follow(): Promise<void> {
    const change = this.#target.inspect();
    if (change === 'none' && !this.#isFull()) return;
    // The file that is left must not be closed while the disk is still taking it.
    await this.#syncing;
    if (change === 'replaced') {
      await this.#leaveFile();
      const found = this.#target.reopen();
      if (found?.hash !== this.#head.hash) await this.open();
    } else if (change === 'truncated') {
      // What an operator's copy-and-truncate leaves is empty; anything else is shown by the chain.
      this.#target.reopen();
      await this.open();
    } else {
      await this.#endFile();
      this.#target.rotate(this.#head.seq);
      await this.open();
    }
  }

  #isFull(): boolean {
    const { maxSizeBytes } = this.#options;
    return maxSizeBytes > 0 && this.#target.path !== undefined && this.#target.sink().size() >= maxSizeBytes;
  }

  /** The last checkpoint of a file, on the disk. */
  async #endFile(): Promise<void> {
    await this.write([], true);
    await this.sync();
  }

  /** Ends a file that was moved away. Where that fails, the first checkpoint of the next file covers its last lines. */
  async #leaveFile(): Promise<void> {
    try {
      await this.#endFile();
    } catch {
      // The old file may be on a disk that is gone; what counts is whether the new one can be written.
    }
  }

  /** Resolves with the number up to which prepared lines are on the disk. What is written meanwhile does not count. */
  async sync(): Promise<number> {
    const head = this.#head;
    const floor = this.#options.floorWith([]);
    const synced = this.#target.sink().sync();
    this.#syncing = Promise.allSettled([synced]);
    await synced;
    if (head.seq >= 0) this.#target.state.saveHead(head, floor);
    return floor;
  }
}
