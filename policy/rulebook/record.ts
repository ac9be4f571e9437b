import type { Condition } from './condition.ts';
import type { MessageRole } from './message.ts';

/** The format that a record says it is of; a record of another one is not loaded. */
export const RECORD_FORMAT = 'toolgate-rulebook/1';

/**
 * One node of a flow's graph. `next`, `to`, `otherwise` and `branches` are indices of nodes of the same flow; `line` is
 * the line in the flow's file.
 */
export type RecordNode =
  /** A person speaks: the first one of a flow is its trigger. */
  | { readonly op: 'turn'; readonly name: string; readonly line: number; readonly next: number }
  | {
      readonly op: 'say';
      readonly role: MessageRole;
      readonly name: string;
      readonly text: string | null;
      readonly line: number;
      readonly next: number;
    }
  | { readonly op: 'execute'; readonly tool: string; readonly line: number; readonly next: number }
  | { readonly op: 'call'; readonly flow: number; readonly line: number; readonly next: number }
  /** A flow started beside this one. */
  | { readonly op: 'fork'; readonly flow: number; readonly line: number; readonly next: number }
  /** A call that leads back to the flow it stands in. */
  | { readonly op: 'recursion'; readonly flow: number; readonly line: number; readonly next: number }
  /** The first branch whose condition holds; a ladder of any length is one node. */
  | {
      readonly op: 'if';
      readonly branches: readonly { readonly when: Condition; readonly to: number; readonly line: number }[];
      readonly otherwise: number;
      readonly line: number;
    }
  /** One of the branches, chosen by a person (`when`) or by what happens first. */
  | { readonly op: 'choose'; readonly person: boolean; readonly branches: readonly number[]; readonly line: number }
  | { readonly op: 'goto'; readonly next: number; readonly line: number }
  /** The end of the flow, or `return`. */
  | { readonly op: 'exit'; readonly line: number }
  | { readonly op: 'stop'; readonly word: 'stop' | 'abort'; readonly line: number }
  /** A rule sheet's row, or the end of one. */
  | {
      readonly op: 'answer';
      readonly tool: string;
      readonly decision: 'allow' | 'refuse' | 'confirm';
      /** The row's rule; null at the end of the sheet, where none held. */
      readonly reason: string | null;
      readonly question: string | null;
      readonly because: string | null;
      readonly line: number;
    };

/** One flow's graph; evaluation starts at `start`. A loop makes some node lead to a node of a higher index. */
export interface RecordFlow {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly entry: boolean;
  readonly loops: boolean;
  readonly start: number;
  readonly nodes: readonly RecordNode[];
}

/** A compiled rulebook: plain JSON, digested into the policy, walked by the check. */
export interface RulebookRecord {
  readonly format: typeof RECORD_FORMAT;
  readonly strict: boolean;
  readonly flows: readonly RecordFlow[];
}

/** The indices that a node leads to in its own flow. */
export function successors(node: RecordNode): readonly number[] {
  switch (node.op) {
    case 'exit':
    case 'stop':
    case 'answer':
      return [];
    case 'if':
      return [...node.branches.map((branch) => branch.to), node.otherwise];
    case 'choose':
      return node.branches;
    default:
      return [node.next];
  }
}
