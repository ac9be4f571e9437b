import { ExpressionParser } from './expression-parser.ts';
import type { Expression } from './expression-tree.ts';
import type { Line } from './line.ts';
import { positionAt } from './line.ts';
import type { Problems } from './problem.ts';
import { SyntaxFault } from './syntax-fault.ts';
import { tokenize } from './token.ts';

/**
 * Parses the condition that stands in a line between two offsets (the line's end where `to` is left out). A fault is
 * reported at its column and gives undefined.
 */
export function parseExpression(
  line: Line,
  from: number,
  problems: Problems,
  to: number = line.text.length,
): Expression | undefined {
  return parse(line, from, to, true, problems);
}

/** Reports what is wrong with a value that is assigned, returned or logged: it is never known, so never compared. */
export function checkValue(line: Line, from: number, problems: Problems): void {
  parse(line, from, line.text.length, false, problems);
}

function parse(line: Line, from: number, to: number, compares: boolean, problems: Problems): Expression | undefined {
  const tokens = tokenize(line, from).filter((token) => token.at < to);
  try {
    return new ExpressionParser(tokens, to, compares).parse();
  } catch (error) {
    if (!(error instanceof SyntaxFault)) throw error;
    problems.error(error.code, positionAt(line, error.at), error.message);
    return undefined;
  }
}
