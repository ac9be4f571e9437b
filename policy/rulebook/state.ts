/**
 * What a walk remembers of the way behind it, in one small number, so that a node is looked at once per state:
 * whether the flow still leads (nothing has happened), waits for its trigger, or had it; what was said last (nothing, a
 * message, a question); and whether a question or a person's turn lies on the way.
 */
export const STATES = 18;

/** Nothing has happened yet. */
export const LEADING = 0;

const WAITING = 1;
const TRIGGERED = 2;
const SAID = 3;
const ASKED = 6;
const PERSON = 9;

function triggerOf(state: number): number {
  return state % 3;
}

/** What was said last: nothing, a message or a question. */
export function lastSaid(state: number): 'nothing' | 'message' | 'question' {
  const said = Math.floor(state / 3) % 3;
  return said === 0 ? 'nothing' : said === 1 ? 'message' : 'question';
}

/** Whether reaching the tool now needs a person. */
export function needsPerson(state: number): boolean {
  return state >= PERSON;
}

function withTrigger(state: number, trigger: number): number {
  return state - triggerOf(state) + trigger;
}

function withPerson(state: number): number {
  return needsPerson(state) ? state : state + PERSON;
}

/** Something happened: the flow no longer leads. */
export function afterStep(state: number): number {
  return triggerOf(state) === LEADING ? withTrigger(state, WAITING) : state;
}

/** A person spoke: the flow's trigger the first time, a person's turn later. */
export function afterTurn(state: number): number {
  return triggerOf(state) === TRIGGERED ? withPerson(state) : withTrigger(state, TRIGGERED);
}

/** A `when` was taken: a person's turn, unless it leads the flow. */
export function afterWhen(state: number): number {
  return withTrigger(triggerOf(state) === LEADING ? state : withPerson(state), TRIGGERED);
}

/** A message was said. */
export function afterMessage(state: number, asks: boolean): number {
  const said = Math.floor(state / 3) % 3;
  const moved = afterStep(state) - said * 3;
  return asks ? withPerson(moved) + ASKED : moved + SAID;
}

/** How a flow started beside this one begins: as its own, but past what a person was asked. */
export function forkState(state: number): number {
  return needsPerson(state) ? PERSON : LEADING;
}

/** The states that a called flow can come back in, as bits: what happened stays happened. */
export function statesAfterCall(state: number): number {
  return AFTER_CALL[state] ?? 0;
}

const AFTER_CALL: readonly number[] = Array.from({ length: STATES }, (_none, before) => {
  let bits = 0;
  for (let after = 0; after < STATES; after += 1) {
    if (triggerOf(after) >= triggerOf(before) && needsPerson(after) >= needsPerson(before)) bits |= 1 << after;
  }
  return bits;
});
