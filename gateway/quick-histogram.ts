/**
 * A histogram without labels that every call is put into: an addition in an array, written out in the text format of
 * Prometheus when it asks. prom-client's makes a key of its labels at each observation.
 */
export class QuickHistogram {
  readonly #name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  /** How many were at most each bound and above the one before; the last holds those above all. */
  readonly #counts: Float64Array;
  #sum = 0;

  /** @param bounds upper bounds of the buckets, ascending */
  constructor(name: string, help: string, bounds: readonly number[]) {
    this.#name = name;
    this.#help = help;
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  /** Counts a value, in the unit of the bounds. */
  observe(value: number): void {
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? 0)) at += 1;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += value;
  }

  /** Its lines, each ended; buckets count all that is at most their bound. */
  render(): string {
    const name = this.#name;
    let text = `# HELP ${name} ${this.#help}\n# TYPE ${name} histogram\n`;
    let total = 0;
    for (const [at, bound] of [...this.#bounds, '+Inf'].entries()) {
      total += this.#counts[at] ?? 0;
      text += `${name}_bucket{le="${bound}"} ${total}\n`;
    }
    return `${text}${name}_sum ${this.#sum}\n${name}_count ${total}\n`;
  }
}
