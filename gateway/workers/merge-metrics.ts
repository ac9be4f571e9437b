import { AggregatorRegistry, type Registry } from 'prom-client';

/**
 * The metrics of all workers as one text: each put together as its aggregator says, sums by default. What the primary
 * counts by itself takes the place of what workers say under the same name.
 */
export async function mergeMetrics(own: Registry, ofWorkers: readonly (readonly object[])[]): Promise<string> {
  const mine = await own.getMetricsAsJSON();
  const names = new Set<unknown>(mine.map(({ name }) => name));
  const theirs = ofWorkers.map((metrics) => metrics.filter((metric) => !('name' in metric && names.has(metric.name))));
  return AggregatorRegistry.aggregate([mine, ...theirs]).metrics();
}

/**
 * What of a worker's metrics goes on to count when it is gone: a sum that fell would be taken for a counter that began anew,
 * and all that the others had counted for new.
 * @param before What earlier ones left.
 * @param last What it last said.
 */
export async function leftBy(before: readonly object[], last: readonly object[]): Promise<readonly object[]> {
  const counts = last.filter((one) => 'type' in one && (one.type === 'counter' || one.type === 'histogram'));
  return AggregatorRegistry.aggregate([[...before], counts]).getMetricsAsJSON();
}
