import type { MetricValueWithName } from 'prom-client';

/** A metric as prom-client's registries read it, and its aggregation puts together. */
interface HistogramValues {
  readonly name: string;
  readonly help: string;
  readonly type: 'histogram';
  readonly aggregator: 'sum';
  readonly values: readonly MetricValueWithName<'le'>[];
}

/**
 * A histogram without labels that every call is put into: an addition in an array, counted up when Prometheus asks.
 * prom-client's makes a key of its labels at each observation.
 */
export class QuickHistogram {
  readonly name: string;
  readonly help: string;
  readonly type: 'histogram' = 'histogram';
  /** Of several workers: added up. */
  readonly aggregator: 'sum' = 'sum';
  readonly #bounds: readonly number[];
  /** How many were at most each bound and above the one before; the last holds those above all. */
  readonly #counts: Float64Array;
  #sum = 0;

  /** @param bounds upper bounds of the buckets, ascending */
  constructor(name: string, help: string, bounds: readonly number[]) {
    this.name = name;
    this.help = help;
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

  /** What a registry of prom-client asks of a metric: its values in the form of `getMetricsAsJSON`; buckets are cumulative. */
  async get(): Promise<HistogramValues> {
    const { name, help, type, aggregator } = this;
    const values: MetricValueWithName<'le'>[] = [];
    let total = 0;
    for (const [at, le] of [...this.#bounds, '+Inf'].entries()) {
      total += this.#counts[at] ?? 0;
      values.push({ labels: { le }, value: total, metricName: `${name}_bucket` });
    }
    values.push({ labels: {}, value: this.#sum, metricName: `${name}_sum` });
    values.push({ labels: {}, value: total, metricName: `${name}_count` });
    return { name, help, type, aggregator, values };
  }
}
