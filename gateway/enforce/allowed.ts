import type { ToolAnswer } from '../../policy/conditions/condition.ts';
import type { Tool } from '../../policy/tool.ts';
import type { PreparedLine } from '../audit/line.ts';
import type { ToolCheck, ToolReceipt } from '../exchange.ts';
import type { ClaimRecord, SessionKey } from '../store/port.ts';
import type { ReadCall } from './read-call.ts';

/** The entry that allowed a call, and where it stands. */
export interface Place {
  readonly key: SessionKey;
  readonly sid: string;
  readonly step: number;
  /** Link of the entry, base64url. */
  readonly link: string;
  readonly agent: string;
  readonly run?: string;
  readonly undoes?: number;
  /** The entry is one of this gateway's own history. A receipt of another issuer's stands in a history that only its issuer has. */
  readonly own: boolean;
}

/** An allowed call that a check allowed. */
export type Checked = Allowed & { readonly check: ToolCheck };

/** An allowed call, recorded: its entry stands in a history and, where it needs one, its claim is made. */
export interface Allowed {
  readonly kind: 'allowed';
  readonly read: ReadCall;
  readonly tool: Tool;
  readonly place: Place;
  /** What allowed it. */
  readonly check?: ToolCheck;
  readonly receipt?: ToolReceipt;
  /** What the rules of the tool read of earlier answers, when the call was allowed. */
  readonly answers?: readonly ToolAnswer[];
  /** Absent for a read that needs none. */
  readonly claim?: ClaimRecord;
  /** The entry is in memory and rides in the store's next group, nothing waited for it: the name of its session there. */
  readonly rides?: string;
  /** The call was claimed before: its step may have been reported on since. */
  readonly again?: true;
  /** The decision's line, not yet in the log: nothing is sent before it is. Absent for what is sent again. */
  readonly line?: PreparedLine;
  /** Where the line is not one of the store's: settles when it is written. */
  readonly logged?: Promise<void>;
}
