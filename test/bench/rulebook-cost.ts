import { compileRulebook } from '../../policy/rulebook/compile.ts';
import { decideRulebook, loadRecord } from '../../policy/rulebook/decide.ts';

export interface RulebookCost {
  readonly flows: number;
  readonly us: number;
}

const CALLS = 20_000;
const ROUNDS = 5;

/** What a rulebook decides a call in, in microseconds of CPU, by how many flows it has that do not concern the tool. */
export function measureRulebook(sizes: readonly number[]): readonly RulebookCost[] {
  return sizes.map((flows) => ({ flows, us: measure(flows) }));
}

function measure(flows: number): number {
  const others = Array.from({ length: flows }, (_, n) => `define flow f${n}\n  if $a${n}\n    execute tool_${n}\n`);
  const text = `define flow refunds\n  if $order_paid\n    execute refund_card\n  else\n    bot refuse\n\n${others.join('\n')}`;
  const { record } = compileRulebook([{ file: 'policy.co', text }]);
  if (record === undefined) throw new Error('the measured rulebook does not compile');
  const prepared = loadRecord(record);
  const inputs = { facts: { order_paid: true }, arguments: { order_id: '4411' } };
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    for (let i = 0; i < CALLS; i++) {
      if (decideRulebook(prepared, 'shop/refund_card', inputs).kind !== 'allow') throw new Error('decided otherwise');
    }
    const used = process.cpuUsage(before);
    best = Math.min(best, (used.user + used.system) / CALLS);
  }
  return best;
}
