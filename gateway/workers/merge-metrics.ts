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
