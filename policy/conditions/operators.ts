import { isArray } from '../../receipts/json-value.ts';
import type { Operator } from './condition.ts';
import { dateOrderOf, isAmong, isIn, isSame, orderOf, type Side } from './values.ts';

/** Whether a value stands to an operand as an operator says; `undefined` where nobody can tell without guessing. */
type Compare = (value: Side, operand: Side) => boolean | undefined;

const not = (answer: boolean | undefined): boolean | undefined => (answer === undefined ? undefined : !answer);

const among: Compare = (value, operand) =>
  value === undefined || !isListSide(operand) ? undefined : isAmong(value, operand);

const ordered =
  (order: (value: Side, operand: Side) => number | undefined, holds: (sign: number) => boolean): Compare =>
  (value, operand) => {
    const sign = order(value, operand);
    return sign === undefined ? undefined : holds(sign);
  };

/** What each operator asks. An operator that is not here does not compile. */
export const COMPARE: Readonly<Record<Operator, Compare>> = {
  is: isSame,
  is_not: (value, operand) => not(isSame(value, operand)),
  one_of: among,
  none_of: (value, operand) => not(among(value, operand)),
  at_least: ordered(orderOf, (sign) => sign >= 0),
  at_most: ordered(orderOf, (sign) => sign <= 0),
  under: ordered(orderOf, (sign) => sign < 0),
  over: ordered(orderOf, (sign) => sign > 0),
  between: (value, operand) => {
    if (!isListSide(operand) || operand.length !== 2) return undefined;
    const [low, high] = [orderOf(value, operand[0]), orderOf(value, operand[1])];
    return low === undefined || high === undefined ? undefined : low >= 0 && high <= 0;
  },
  before: ordered(dateOrderOf, (sign) => sign < 0),
  after: ordered(dateOrderOf, (sign) => sign > 0),
  contains: (value, operand) => isIn(operand, value),
};

function isListSide(side: Side): side is Extract<Side, readonly unknown[]> {
  return typeof side === 'object' && isArray(side as never);
}
