import { addTexts } from '../../policy/conditions/decimals.ts';
import type { Bucket, Reservation } from '../../policy/conditions/limits.ts';

interface Hold {
  readonly bucket: string;
  readonly link: string;
  /** Decimal text. */
  readonly amount: string;
  readonly atMs: number;
}

/**
 * What this process has counted of the limits. Other processes have counts of their own: a gateway's, where the receipt
 * arrives, is the one that all of them share.
 */
export class LocalCounts {
  #holds: readonly Hold[] = [];

  /** The amounts of the buckets, as decimal texts. */
  count(buckets: readonly Bucket[]): ReadonlyMap<string, string> {
    const counted = new Map<string, string>();
    for (const { name, sinceMs = 0 } of buckets) {
      const held = this.#holds.filter(({ bucket, atMs }) => bucket === name && atMs >= sinceMs);
      counted.set(name, held.map(({ amount }) => amount).reduce(addTexts, '0'));
    }
    return counted;
  }

  hold(reservations: readonly Reservation[], link: string, atMs: number): void {
    this.#holds = [...this.#holds, ...reservations.map(({ name, amount }) => ({ bucket: name, link, amount, atMs }))];
  }

  /** A call that certainly did not run counts no more. */
  release(link: string): void {
    this.#holds = this.#holds.filter((hold) => hold.link !== link);
  }
}
