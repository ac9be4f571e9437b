import { encodeBase64url } from './base64url.ts';
import type { CanonicalJson } from './canonical.ts';
import type { Crypto } from './crypto.ts';
import { argumentsDigest } from './digest.ts';
import { type Entry, type History, HistoryFault } from './history.ts';
import { parseHistory } from './history-parse.ts';
import { type VerifiedHistory, type VerifyOptions, verifyHistory } from './history-verify.ts';
import type { JsonObject, JsonValue } from './json-value.ts';

/** The format's name, in every answer's `format`. */
const RECEIPT_FORMAT = 'qls-tool-receipt/1';

/** Why a receipt does not let a call pass, in the order in which it is looked at. */
type ReceiptReason =
  | 'unknown_tool'
  | 'receipt_missing'
  | 'history_invalid'
  | 'receipt_not_allowed'
  | 'receipt_mismatch'
  | 'receipt_spent';

/** The answer as it is sent. `session` and `step` are absent where no history was there to take them from. */
type ReceiptAnswer = {
  readonly format: typeof RECEIPT_FORMAT;
  readonly decision: 'allow' | 'refuse';
  readonly reason: 'receipt' | ReceiptReason;
  readonly reasons: readonly string[];
  readonly tool: string;
  readonly agent: string;
  readonly session?: string;
  readonly step?: number;
  readonly resend: boolean;
  readonly detail: JsonObject;
};

/** The call that a receipt is to admit. */
export interface ReceiptCall {
  /** The full name, `server/tool`. */
  readonly tool: string;
  /** Whether the catalogue has the tool within this agent's reach; it is looked at before any receipt. */
  readonly reachable: boolean;
  /** The agent that the call names; `''` where it names none. */
  readonly agent: string;
  /** Who this caller may be; `'any'` where no credentials are configured. */
  readonly agents: ReadonlySet<string> | 'any';
  /** As sent, nothing filled in. */
  readonly arguments: CanonicalJson;
}

/**
 * What the store has of the call that this receipt admitted before. `spent`: it is over, and nothing of it is for this
 * caller: another caller's, reported by whoever ran it, or no longer kept.
 */
export type ReceiptClaim = 'none' | 'not_sent' | 'in_flight' | 'settled' | 'unknown' | 'spent';

/** What only the gateway knows of a receipt that has verified. */
export interface ReceiptFacts {
  /** Whether the history's session is another caller's. */
  readonly foreign: boolean;
  /** The current policy digest where the issuer is this gateway; `undefined` for any other issuer. */
  readonly policy?: string;
  /**
   * The links kept for (issuer, caller, session) in base64url, by step: of the steps that the history shows, `prev`'s
   * among them, as many as are kept. Another link there is another line.
   */
  readonly knownLinks: ReadonlyMap<number, string>;
  readonly claim: ReceiptClaim;
  /** Whether sending again is safe: `read`; `write` where it is idempotent or its backend honours the key; else `no`. */
  readonly resendSafe: 'no' | 'read' | 'write';
}

/**
 * What to do with a call after its receipt was looked at: `send` it for the first time, `resend` it with the same key,
 * `replay` the stored answer, or `wait` (409: the first one is still in flight).
 */
type ReceiptHandling = 'refuse' | 'send' | 'resend' | 'replay' | 'wait';

/** The answer, how to go on, and for a refusal a sentence for whoever reads it. */
export interface ReceiptEvaluation {
  readonly answer: ReceiptAnswer;
  readonly handling: ReceiptHandling;
  readonly sentence?: string;
}

/** A receipt that verified: its history, and the entry and link that it is. */
export interface VerifiedReceipt {
  readonly verified: VerifiedHistory;
  readonly entry: Entry;
  readonly link: Uint8Array;
}

const SENTENCES = {
  unknown_tool: 'there is no such tool within this agent’s reach',
  receipt_missing: 'the call carries no receipt: check it first and send the history with it',
  receipt_not_allowed: 'the receipt’s decision is not `allow`: a confirm or a refusal admits nothing',
  receipt_mismatch: 'the receipt is for another call: send exactly the tool, arguments and agent that were checked',
  receipt_spent: 'the receipt was used already: check the call again',
} as const;

/**
 * The first half, needing nothing from a store: a call and the JSON value that it sent as history in; the verified
 * receipt out, or the refusal where the tool is out of reach, there is no receipt, or its history is invalid. Give
 * `maxAgeMs` among the options.
 */
export function readReceipt(
  call: ReceiptCall,
  value: JsonValue | undefined,
  options: VerifyOptions,
): VerifiedReceipt | ReceiptEvaluation {
  if (!call.reachable) return refuse(call, undefined, 'unknown_tool', {});
  if (value === undefined) return refuse(call, undefined, 'receipt_missing', {});
  try {
    const carried = parseHistory(value);
    if (carried.kind === 'opening' || carried.history.entries.length === 0) {
      return refuse(call, undefined, 'receipt_missing', {});
    }
    return lastEntry(carried.history, options);
  } catch (error) {
    if (error instanceof HistoryFault) return invalid(call, undefined, error);
    throw error;
  }
}

function lastEntry(history: History, options: VerifyOptions): VerifiedReceipt {
  const verified = verifyHistory(history, options);
  const entry = history.entries.at(-1);
  const link = verified.links.at(-1);
  if (entry === undefined || link === undefined) throw new HistoryFault('format', 0, 'the history has no entry');
  return { verified, entry, link };
}

/**
 * The second half: a verified receipt, the call and what the gateway knows in, the answer out, in the order of refusals
 * of docs/formats.md. Pure: spending the receipt is the caller's, in the transaction that claims the call.
 */
export function evaluateReceipt(
  crypto: Crypto,
  receipt: VerifiedReceipt,
  call: ReceiptCall,
  facts: ReceiptFacts,
): ReceiptEvaluation {
  const { entry } = receipt;
  const fault = storedFault(receipt, facts);
  if (fault !== undefined) return invalid(call, receipt, fault);
  if (entry.decision !== 'allow') return refuse(call, receipt, 'receipt_not_allowed', { decision: entry.decision });
  const differs = differences(crypto, receipt, call);
  if (differs.length > 0) return refuse(call, receipt, 'receipt_mismatch', { differs });
  if (entry.outcome !== undefined || facts.claim === 'spent') return refuse(call, receipt, 'receipt_spent', {});
  if (facts.claim === 'none') return allow(call, receipt, 'send');
  if (facts.claim === 'not_sent') return allow(call, receipt, 'resend');
  if (facts.resendSafe === 'no') return refuse(call, receipt, 'receipt_spent', {});
  if (facts.resendSafe === 'read') return allow(call, receipt, 'resend');
  if (facts.claim === 'in_flight') return allow(call, receipt, 'wait');
  return allow(call, receipt, facts.claim === 'settled' ? 'replay' : 'resend');
}

/** What the store knows otherwise than the history says. */
function storedFault(receipt: VerifiedReceipt, facts: ReceiptFacts): HistoryFault | undefined {
  const { entry, verified } = receipt;
  const { prev, entries } = verified.history;
  const index = entries.length - 1;
  if (facts.foreign) return new HistoryFault('session', 0, 'the history is of another caller’s session');
  if (facts.policy !== undefined && facts.policy !== entry.policy) {
    return new HistoryFault(
      'policy',
      index,
      'the call was checked under a policy that no longer holds: check it again',
    );
  }
  const knownPrev = facts.knownLinks.get(entry.step - 1);
  if (prev !== undefined && knownPrev !== undefined && knownPrev !== prev.link) {
    return new HistoryFault('link', index, 'the link before the receipt is not the one of its session');
  }
  return facts.knownLinks.size === 0 ? undefined : forkFault(receipt, facts.knownLinks);
}

function forkFault({ verified }: VerifiedReceipt, knownLinks: ReadonlyMap<number, string>): HistoryFault | undefined {
  const { entries } = verified.history;
  for (let i = 0; i < entries.length; i++) {
    const { step } = entries[i] as Entry;
    const known = knownLinks.get(step);
    if (known !== undefined && known !== encodeBase64url(verified.links[i] as Uint8Array)) {
      return new HistoryFault('forked', i, `the session has another step ${step}: it was continued twice`);
    }
  }
  return undefined;
}

function differences(crypto: Crypto, receipt: VerifiedReceipt, call: ReceiptCall): string[] {
  const { entry, verified } = receipt;
  const differs: string[] = [];
  if (entry.tool !== call.tool) differs.push('tool');
  if (entry.arguments !== argumentsDigest(crypto, verified.nonce, call.arguments)) differs.push('arguments');
  const named = call.agent === '' || call.agent === entry.agent;
  if (!named || (call.agents !== 'any' && !call.agents.has(entry.agent))) differs.push('agent');
  return differs;
}

function allow(call: ReceiptCall, receipt: VerifiedReceipt, handling: ReceiptHandling): ReceiptEvaluation {
  return { answer: answer(call, receipt, 'receipt', handling !== 'send', {}), handling };
}

function refuse(
  call: ReceiptCall,
  receipt: VerifiedReceipt | undefined,
  reason: Exclude<ReceiptReason, 'history_invalid'>,
  detail: JsonObject,
): ReceiptEvaluation {
  return { answer: answer(call, receipt, reason, false, detail), handling: 'refuse', sentence: SENTENCES[reason] };
}

function invalid(call: ReceiptCall, receipt: VerifiedReceipt | undefined, fault: HistoryFault): ReceiptEvaluation {
  const detail = { fault: fault.fault, entry: fault.entry };
  const given = answer(call, receipt, 'history_invalid', false, detail);
  return { answer: given, handling: 'refuse', sentence: fault.message };
}

function answer(
  call: ReceiptCall,
  receipt: VerifiedReceipt | undefined,
  reason: ReceiptAnswer['reason'],
  resend: boolean,
  detail: JsonObject,
): ReceiptAnswer {
  const decision = reason === 'receipt' ? 'allow' : 'refuse';
  const agent = call.agent === '' ? (receipt?.entry.agent ?? '') : call.agent;
  const point = receipt && { session: receipt.verified.history.session, step: receipt.entry.step };
  return {
    format: RECEIPT_FORMAT,
    decision,
    reason,
    reasons: [reason],
    tool: call.tool,
    agent,
    ...point,
    resend,
    detail,
  };
}
