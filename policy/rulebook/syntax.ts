import type { Version } from './line.ts';
import type { Written } from './lower.ts';
import type { Position } from './problem.ts';

/** What both languages are read into. */
export type Statement =
  | { readonly kind: 'turn'; readonly name: string; readonly at: Position }
  | { readonly kind: 'say'; readonly name: string; readonly text: string | undefined; readonly at: Position }
  | { readonly kind: 'execute'; readonly tool: string; readonly at: Position }
  | { readonly kind: 'call'; readonly name: string; readonly form: CallForm; readonly at: Position }
  | {
      readonly kind: 'if';
      readonly branches: readonly IfBranch[];
      readonly otherwise: Block | undefined;
      readonly at: Position;
    }
  | { readonly kind: 'when'; readonly branches: readonly WhenBranch[]; readonly at: Position }
  | { readonly kind: 'choice'; readonly branches: readonly Block[]; readonly at: Position }
  | { readonly kind: 'while'; readonly condition: Written; readonly body: Block; readonly at: Position }
  | { readonly kind: 'leave'; readonly word: LeaveWord; readonly at: Position }
  | { readonly kind: 'label'; readonly name: string; readonly at: Position }
  | { readonly kind: 'goto'; readonly name: string; readonly at: Position }
  | { readonly kind: 'nothing'; readonly at: Position };

export type Block = readonly Statement[];

/**
 * How a flow is called. `await` waits for it, and its abort is the caller's; `start` runs it beside the caller. `user`
 * and `bot` are those two kinds of line, which may or may not have a flow of that name; neither need a `value`, which is
 * awaited where it is one.
 */
export type CallForm = 'await' | 'start' | 'user' | 'bot' | 'value';

type LeaveWord = 'break' | 'continue' | 'return' | 'stop' | 'abort';

export interface IfBranch {
  readonly condition: Written;
  readonly body: Block;
  readonly at: Position;
}

/** `trigger` holds what the branch itself does (a tool awaited in it, a flow called by it). */
export interface WhenBranch {
  readonly trigger: Block;
  readonly body: Block;
  readonly at: Position;
}

/** One flow as written. */
export interface FlowSyntax {
  readonly name: string;
  readonly version: Version;
  /** A subflow runs only where something calls it. */
  readonly callable: boolean;
  readonly override: boolean;
  /** Names given a value in the flow, its parameters among them, with the first place. */
  readonly assigned: ReadonlyMap<string, Position>;
  /** Names that the flow declares as shared by all flows. */
  readonly globals: ReadonlySet<string>;
  readonly body: Block;
  readonly at: Position;
}

/** The words that a bot message is defined with. */
export interface MessageSyntax {
  readonly name: string;
  readonly texts: readonly string[];
  readonly at: Position;
}

/** A file as written. */
export interface FileSyntax {
  readonly file: string;
  readonly version: Version;
  readonly flows: readonly FlowSyntax[];
  readonly messages: readonly MessageSyntax[];
  readonly imports: readonly { readonly path: string; readonly at: Position }[];
}
