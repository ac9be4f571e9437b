import { canonicalize } from '../../receipts/canonical.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { argumentsDigest } from '../../receipts/digest.ts';
import { parseObject } from './arguments.ts';
import { type HistoryOptions, type Judged, judgeHistory } from './history.ts';
import { print, printable, printJson, renderColumns } from './output.ts';

export interface ReceiptOptions extends HistoryOptions {
  readonly tool?: string;
  readonly args?: string;
  readonly agent?: string;
}

interface Finding {
  readonly verdict: 'admits' | 'refuses' | 'cannot_tell';
  /** The reason as the gateway would give it, docs/formats.md section 7. */
  readonly reason?:
    | 'history_invalid'
    | 'receipt_missing'
    | 'receipt_not_allowed'
    | 'receipt_mismatch'
    | 'receipt_spent';
  readonly why: string;
  readonly receipt?: {
    readonly session: string;
    readonly step: number;
    readonly tool: string;
    readonly agent: string;
    readonly decision: string;
    readonly at: number;
  };
  /** What the receipt says and the options did not ask about. */
  readonly not_compared?: readonly string[];
}

const EXITS = { admits: 0, refuses: 1, cannot_tell: 2 } as const;

/**
 * Verifies a file and compares its last entry with the call, prints what is found, and resolves with the exit code. Throws
 * `CliFault` for a file, key or arguments that are none.
 */
export async function verifyReceiptFile(file: string, options: ReceiptOptions): Promise<0 | 1 | 2> {
  const args = options.args === undefined ? undefined : canonicalize(parseObject('--args', options.args));
  const finding = judge(judgeHistory(file, options), options, args);
  await (options.json === true ? printJson(finding) : print(render(finding)));
  return EXITS[finding.verdict];
}

function judge(judged: Judged, options: ReceiptOptions, args: ReturnType<typeof canonicalize> | undefined): Finding {
  if (judged.verdict === 'invalid') {
    return { verdict: 'refuses', reason: 'history_invalid', why: `${judged.fault.fault}: ${judged.fault.message}` };
  }
  const entry = judged.history?.entries.at(-1);
  if (judged.history === undefined || entry === undefined) {
    return { verdict: 'refuses', reason: 'receipt_missing', why: 'the history has no entry' };
  }
  const { step, tool, agent, decision, at } = entry;
  const receipt = { session: judged.history.session, step, tool, agent, decision, at };
  if (judged.verdict === 'cannot_tell') return { verdict: 'cannot_tell', why: judged.why, receipt };
  if (decision !== 'allow') {
    return { verdict: 'refuses', reason: 'receipt_not_allowed', why: `its decision is \`${decision}\``, receipt };
  }
  const differs = [
    ...(options.tool === undefined || options.tool === tool ? [] : ['tool']),
    ...(args === undefined || argumentsDigest(nodeCrypto, judged.verified.nonce, args) === entry.arguments
      ? []
      : ['arguments']),
    ...(options.agent === undefined || options.agent === agent ? [] : ['agent']),
  ];
  if (differs.length > 0) {
    return {
      verdict: 'refuses',
      reason: 'receipt_mismatch',
      why: `it is for another call: ${differs.join(', ')}`,
      receipt,
    };
  }
  if (entry.outcome !== undefined) {
    return { verdict: 'refuses', reason: 'receipt_spent', why: `its call has an outcome: ${entry.outcome}`, receipt };
  }
  const open = (['tool', 'args', 'agent'] as const).filter((name) => options[name] === undefined);
  const why = 'it is genuine and allows this call; whether it was used before, or is too old, the gateway decides';
  return { verdict: 'admits', why, receipt, ...(open.length === 0 ? {} : { not_compared: open }) };
}

function render({ verdict, reason, why, receipt, not_compared }: Finding): string {
  const word = { admits: 'admits', refuses: 'REFUSES', cannot_tell: 'cannot tell' }[verdict];
  const head = `${word}: ${reason === undefined ? '' : `${reason}: `}${printable(why)}\n`;
  if (receipt === undefined) return head;
  const { session, step, tool, agent, decision, at } = receipt;
  return `${head}${renderColumns([
    ['call', printable(`${tool} by ${agent === '' ? '(no agent)' : agent}`)],
    ['decision', `${decision} at ${at <= 8.64e15 ? new Date(at).toISOString() : at}`],
    ['place', printable(`${session}#${step}`)],
    ...(not_compared === undefined ? [] : [['not compared', not_compared.join(', ')]]),
  ])}`;
}
