import { reasonCode } from '../../policy/reasons.ts';
import type { Verdict } from '../../policy/verdict.ts';
import type { Gateway } from '../gateway.ts';

/** Counts a decision in the metrics, by its first reason. */
export function countDecision(gateway: Gateway, { tool, decision, reasons }: Verdict): void {
  gateway.metrics.decided(tool?.id, decision, reasonCode(reasons[0] ?? 'internal_error'));
}
