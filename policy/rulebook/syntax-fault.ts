import type { ProblemCode } from './problem.ts';

/** Thrown inside a parser alone, which turns it into a problem at the offset in the line. */
export class SyntaxFault extends Error {
  readonly code: ProblemCode;
  readonly at: number;

  constructor(code: ProblemCode, at: number, message: string) {
    super(message);
    this.code = code;
    this.at = at;
  }
}
