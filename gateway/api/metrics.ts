import { type ApiBindings, requireOperator } from './api-context.ts';

/** `GET /metrics`: the process in numbers, in the Prometheus text format. For approvers and hosts. */
export async function getMetrics(env: ApiBindings): Promise<Response> {
  requireOperator(env);
  const { metrics } = env.gateway;
  return new Response(await metrics.render(), { headers: { 'content-type': metrics.contentType } });
}
