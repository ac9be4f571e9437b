/**
 * What a walk gives. `loop` is a path that never ends; `abstain` one that ends without a word on the tool. A question
 * or reason that is still undefined is filled in by the message that was said last before.
 */
export type Answer =
  | { readonly kind: 'loop' | 'abstain' }
  | { readonly kind: 'allow'; readonly flow: string; readonly line: number }
  | {
      readonly kind: 'confirm';
      readonly question: string | undefined;
      readonly because: string | undefined;
      readonly flow: string;
      readonly line: number;
    }
  | {
      readonly kind: 'refuse';
      readonly reason: string | undefined;
      readonly because: string | undefined;
      readonly flow: string;
      readonly line: number;
    }
  /** A rule sheet of which no row holds. */
  | { readonly kind: 'no_rule'; readonly flow: string; readonly line: number }
  | { readonly kind: 'undecided'; readonly flow: string; readonly line: number };

export const LOOP: Answer = { kind: 'loop' };
export const ABSTAIN: Answer = { kind: 'abstain' };

/**
 * Both sides of an `if` on something unknown: equal answers stand, allow with confirm is confirm, anything else is
 * undecided, at the place given.
 */
export function joinAnswers(left: Answer, right: Answer, flow: string, line: number): Answer {
  if (left.kind === 'loop') return right;
  if (refuses(left) && refuses(right)) return left;
  if (right.kind === 'loop' || left.kind === right.kind) return left;
  if (left.kind === 'allow' && right.kind === 'confirm') return right;
  if (left.kind === 'confirm' && right.kind === 'allow') return left;
  if (left.kind === 'undecided') return left;
  return right.kind === 'undecided' ? right : { kind: 'undecided', flow, line };
}

function refuses(answer: Answer): boolean {
  return answer.kind === 'refuse' || answer.kind === 'no_rule';
}

const SEVERITY: Readonly<Record<Answer['kind'], number>> = {
  loop: 0,
  abstain: 1,
  allow: 2,
  confirm: 3,
  undecided: 4,
  no_rule: 5,
  refuse: 5,
};

/** Of several flows, or of the branches of a `when`: refuse over undecided over confirm over allow; abstainers drop out. */
export function worstAnswer(left: Answer, right: Answer): Answer {
  return SEVERITY[right.kind] > SEVERITY[left.kind] ? right : left;
}
