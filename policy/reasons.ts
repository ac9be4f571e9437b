import type { Decision } from '../receipts/history.ts';

/**
 * Every reason code an answer can carry, in one table: what it decides, the HTTP status of a proxied route, and the
 * sentence a caller is shown. The type of a code is this table's keys, so a misspelt code does not compile.
 */

/** A row of the table. */
export interface Reason {
  readonly decision: Decision;
  /** HTTP status of the answer on a proxied route. */
  readonly status: number;
  /** Says what is wrong and what to do, to whoever made the call. */
  readonly sentence: string;
}

export const REASONS = {
  unknown_tool: {
    decision: 'refuse',
    status: 403,
    sentence: 'no tool of that name can be reached here; ask `GET /v1/tools` for the tools that can',
  },
  agent_required: {
    decision: 'refuse',
    status: 403,
    sentence: 'the call names no agent and its credential may speak for several; name one in `agent`',
  },
  licence_lapsed: { decision: 'refuse', status: 403, sentence: 'the licence of this gateway has lapsed; renew it' },
  history_invalid: {
    decision: 'refuse',
    status: 403,
    sentence: 'the history does not verify; go on with the new session that this answer starts',
  },
  argument_schema: {
    decision: 'refuse',
    status: 403,
    sentence: 'the arguments do not fit the schema of the tool; correct the one that `pointer` names',
  },
  undeclared_destination: {
    decision: 'refuse',
    status: 403,
    sentence:
      'an argument holds an address to send to, and the tool is not one that sends anything out; where it takes a recipient, the operator declares the tool `sends_out`; where the address only says whose data is read, the operator names the argument in `subject_argument`',
  },
  order_rule: {
    decision: 'refuse',
    status: 403,
    sentence: 'an order rule of the tool does not hold in this session; `detail.rule` names it',
  },
  run_ended: {
    decision: 'refuse',
    status: 403,
    sentence: 'the run has ended and takes no further calls; begin a new run',
  },
  compensation_mismatch: {
    decision: 'refuse',
    status: 403,
    sentence: 'this is not the declared undo of the step that it names, with the arguments bound from that step',
  },
  compensation_spent: { decision: 'refuse', status: 403, sentence: 'the step that it names is already undone' },
  condition_failed: {
    decision: 'refuse',
    status: 403,
    sentence: 'a condition of the tool does not hold; `detail` names it',
  },
  condition_unknown: {
    decision: 'refuse',
    status: 403,
    sentence: 'a condition of the tool compares a value that nobody could read; call the tool that returns it first',
  },
  usage_unknown: {
    decision: 'refuse',
    status: 403,
    sentence: 'what was used of a limit of the tool could not be counted',
  },
  limit_reached: { decision: 'refuse', status: 403, sentence: 'a limit of the tool is reached; `detail` names it' },
  spend_unknown: {
    decision: 'refuse',
    status: 403,
    sentence: 'what the call would spend could not be read as an amount of zero or more',
  },
  spend_exceeded: {
    decision: 'refuse',
    status: 403,
    sentence: 'the call would spend more than is left; `detail` names the limit',
  },
  rulebook_undecided: {
    decision: 'refuse',
    status: 403,
    sentence: 'the rulebook governs the tool and could not decide this call from the facts that are known',
  },
  rulebook_unreached: {
    decision: 'refuse',
    status: 403,
    sentence: 'the rulebook governs the tool and no flow of it lets this call through',
  },
  no_rule: { decision: 'refuse', status: 403, sentence: 'the rule sheet has no row that matches this call' },
  rulebook_refused: { decision: 'refuse', status: 403, sentence: 'a rule of the rulebook refuses this call' },
  tainted_call: {
    decision: 'refuse',
    status: 403,
    sentence: 'the call carries a value from a source that is less trusted than the tool needs',
  },
  confirmed: { decision: 'allow', status: 200, sentence: 'a person approved exactly this call' },
  gate_clarify: { decision: 'confirm', status: 428, sentence: 'the rulebook asks a person about this call' },
  argument_origin: {
    decision: 'confirm',
    status: 428,
    sentence: 'a person must approve values that no trusted source gave',
  },
  irreversible_pivot: {
    decision: 'confirm',
    status: 428,
    sentence:
      'earlier writes of this run would be undone on failure. Nothing undoes this step, and later steps cannot undo it',
  },
  schema_partial: {
    decision: 'confirm',
    status: 428,
    sentence: 'a part of the schema of the tool cannot be enforced, so a person must look at the arguments',
  },
  write: { decision: 'confirm', status: 428, sentence: 'a person must approve every write' },
  compensation: { decision: 'allow', status: 200, sentence: 'the call undoes a step, exactly as its tool declares' },
  allow: { decision: 'allow', status: 200, sentence: 'nothing held the call' },
  internal_error: {
    decision: 'refuse',
    status: 500,
    sentence: 'the gateway could not decide the call, so it was not made; the log of the gateway says why',
  },
  store_unavailable: {
    decision: 'refuse',
    status: 503,
    sentence: 'the gateway cannot record calls now, so none is made; try again later',
  },
  receipt: { decision: 'allow', status: 200, sentence: 'the receipt admits exactly this call' },
  receipt_missing: {
    decision: 'refuse',
    status: 403,
    sentence: 'the route takes calls with a receipt; send the history whose last entry allowed this call',
  },
  receipt_not_allowed: {
    decision: 'refuse',
    status: 403,
    sentence: 'the last entry of the history does not allow its call',
  },
  receipt_mismatch: {
    decision: 'refuse',
    status: 403,
    sentence: 'the receipt is for another call; `detail.differs` says what differs',
  },
  receipt_spent: {
    decision: 'refuse',
    status: 403,
    sentence: 'the receipt was used; check the call again for a new one',
  },
} as const;

/** A code of the table. */
export type ReasonCode = keyof typeof REASONS;

/**
 * A reason as an answer carries it: a code, a code with names (`argument_origin: amount`), or, for a refusal by the
 * rulebook, the rule's own name.
 */
export type ReasonText = string;

/** The code of a reason text: what stands before a colon; a name that the table lacks is a rulebook's own. */
export function reasonCode(reason: ReasonText): ReasonCode {
  const colon = reason.indexOf(':');
  const head = colon === -1 ? reason : reason.slice(0, colon);
  return isReasonCode(head) ? head : 'rulebook_refused';
}

/** The row of a reason text. */
export function reasonOf(reason: ReasonText): Reason {
  return REASONS[reasonCode(reason)];
}

/**
 * HTTP status of an answer on a proxied route. A question to a person is 428 (RFC 6585 section 3) whatever it is asked
 * for, also where another row refuses for the same reason.
 */
export function statusOf(decision: Decision, reason: ReasonText): number {
  return decision === 'confirm' ? REASONS.write.status : reasonOf(reason).status;
}

/** Whether a text is a code of the table, by its very name. */
export function isReasonCode(text: string): text is ReasonCode {
  return Object.hasOwn(REASONS, text);
}
