import type { Position, Problems } from './problem.ts';

/** What a flow's statements say besides what they do: the names that they give a value to. */
export class FlowNotes {
  readonly assigned: Map<string, Position> = new Map();
  readonly globals: Set<string> = new Set();
  readonly #problems: Problems;

  constructor(problems: Problems) {
    this.#problems = problems;
  }

  /** Records that `$name` (given without its `$`) gets a value here. */
  assign(name: string, at: Position): void {
    if (name === 'call') {
      this.#problems.error(
        'assigned_call',
        at,
        "`$call` holds the call's own arguments and cannot be given a value; use another name",
      );
      return;
    }
    if (!this.assigned.has(name)) this.assigned.set(name, at);
  }
}
