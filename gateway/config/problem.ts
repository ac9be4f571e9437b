/** Where a value stands in a configuration: member names and list indexes from the top. */
export type ConfigPath = readonly (string | number)[];

/** Something to tell about a configuration, at a place in a file. */
export interface Problem {
  /** With an `error` the configuration is not used; a `warning` is told and nothing else. */
  readonly severity: 'error' | 'warning';
  /** Stable, for scripts: `unknown_word`, `missing_variable`, ... */
  readonly code: string;
  /** What is wrong and what to do, lower case start, user input in backticks. */
  readonly message: string;
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1. */
  readonly column: number;
}

/** A place in a file; line and column count from 1. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** Where the member at a path stands: its `key`, or (default) its value. A path that is not there: its nearest parent. */
export type PositionOf = (path: ConfigPath, part?: 'key' | 'value') => Position;

/** Collects problems by path, so that every fault is reported at once. */
export class ProblemLog {
  readonly #positionOf: PositionOf;
  readonly #problems: Problem[] = [];

  constructor(positionOf: PositionOf) {
    this.#positionOf = positionOf;
  }

  error(code: string, path: ConfigPath, message: string, part: 'key' | 'value' = 'value'): void {
    this.#problems.push({ severity: 'error', code, message, ...this.#positionOf(path, part) });
  }

  warning(code: string, path: ConfigPath, message: string, part: 'key' | 'value' = 'value'): void {
    this.#problems.push({ severity: 'warning', code, message, ...this.#positionOf(path, part) });
  }

  add(problems: Iterable<Problem>): void {
    this.#problems.push(...problems);
  }

  /** All that was told, in the order of the file. */
  get problems(): readonly Problem[] {
    // What a missing variable left behind fits nowhere; one fault for one cause.
    const missing = new Set(this.#problems.filter((problem) => problem.code === 'missing_variable').map(placeOf));
    return sortProblems(
      this.#problems.filter((problem) => problem.code === 'missing_variable' || !missing.has(placeOf(problem))),
    );
  }
}

function placeOf(problem: Problem): string {
  return `${problem.line}:${problem.column}`;
}

/** Whether any of the problems keeps the configuration from being used. */
export function hasErrors(problems: readonly Problem[]): boolean {
  return problems.some((problem) => problem.severity === 'error');
}

/** Problems by file, line and column; equal ones once. */
export function sortProblems(problems: readonly Problem[]): readonly Problem[] {
  const seen = new Set<string>();
  return [...problems]
    .sort(
      (a, b) => compareText(a.file, b.file) || a.line - b.line || a.column - b.column || compareText(a.code, b.code),
    )
    .filter((problem) => {
      const line = renderProblem(problem);
      if (seen.has(line)) return false;
      seen.add(line);
      return true;
    });
}

/** Warnings of one code at one place that are told one by one. */
const ALIKE = 3;

/** Of many warnings of one code at one place (the hundreds of operations of a document) the first, and how many more there are. */
export function foldWarnings(problems: readonly Problem[]): readonly Problem[] {
  const groups = Map.groupBy(
    problems,
    (problem) => `${problem.severity} ${problem.code} ${problem.file} ${placeOf(problem)}`,
  );
  return [...groups.values()].flatMap((alike) => {
    const [first] = alike;
    if (first === undefined || first.severity === 'error' || alike.length <= ALIKE + 1) return alike;
    const message = `and ${alike.length - ALIKE} more like these`;
    return [...alike.slice(0, ALIKE), { ...first, message }];
  });
}

/** One line for each problem, `file:line:column: error: message [code]`, as editors and terminals link it. */
export function renderProblems(problems: readonly Problem[]): string {
  return sortProblems(problems)
    .map((problem) => `${renderProblem(problem)}\n`)
    .join('');
}

function renderProblem(problem: Problem): string {
  const { file, line, column, severity, message, code } = problem;
  return `${file}:${line}:${column}: ${severity}: ${message} [${code}]`;
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
