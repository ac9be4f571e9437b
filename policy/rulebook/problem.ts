/** Where something stands in a source: lines and columns count from 1, columns in UTF-16 units. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** Everything that compiling a rulebook can complain about; the code is stable, the message is for people. */
export type ProblemCode =
  | 'action_name'
  | 'action_variable'
  | 'argument_list'
  | 'assigned_call'
  | 'assigned_fact'
  | 'body_not_allowed'
  | 'body_missing'
  | 'bracket_unclosed'
  | 'check_cell'
  | 'condition_syntax'
  | 'condition_unknown'
  | 'control_character'
  | 'decision_cell'
  | 'decorator'
  | 'definition'
  | 'duplicate_flow'
  | 'duplicate_label'
  | 'else_after_when'
  | 'ellipsis'
  | 'file_unreadable'
  | 'flow_depth'
  | 'flow_name'
  | 'flow_name_case'
  | 'flow_variable'
  | 'governs_nothing'
  | 'hangs_on_missing'
  | 'header_cell'
  | 'if_parenthesis'
  | 'import_unresolved'
  | 'increment'
  | 'indent_dedent'
  | 'indent_mixed'
  | 'indent_unexpected'
  | 'label_unknown'
  | 'message_undefined'
  | 'missing_stop'
  | 'nested_flow'
  | 'nesting'
  | 'no_tool_reached'
  | 'override'
  | 'recursion'
  | 'sheet_format'
  | 'statement_misplaced'
  | 'statement_unknown'
  | 'stop_reference'
  | 'string_unclosed'
  | 'too_large'
  | 'too_many_lines'
  | 'too_many_problems'
  | 'tool_cell'
  | 'tool_name'
  | 'tool_not_in_catalogue'
  | 'unreachable'
  | 'unknown_flow'
  | 'version';

/** One complaint, with its place. An error means that there is no record. */
export interface Problem extends Position {
  readonly severity: 'error' | 'warning';
  readonly code: ProblemCode;
  readonly message: string;
}

/** A file of nothing but faults must not turn into an answer many times its size. */
const MAX_PROBLEMS = 200;

/**
 * Collects problems in the order in which they are found, up to a cap. No number of warnings hides an error: past the cap
 * an error takes the place of a warning, so that `list` holds an error wherever there was one.
 */
export class Problems {
  readonly #kept: Problem[] = [];
  #errors = 0;
  #leftOut: Position | undefined;

  error(code: ProblemCode, at: Position, message: string): void {
    this.add({ severity: 'error', code, message, file: at.file, line: at.line, column: at.column });
  }

  warn(code: ProblemCode, at: Position, message: string): void {
    this.add({ severity: 'warning', code, message, file: at.file, line: at.line, column: at.column });
  }

  get failed(): boolean {
    return this.#errors > 0;
  }

  /** Whether one more of a kind would still be listed; else its words need not be worked out. */
  hasRoom(severity: Problem['severity']): boolean {
    if (this.#kept.length < MAX_PROBLEMS) return true;
    return severity === 'error' && this.#kept.some((kept) => kept.severity === 'warning');
  }

  /** What was found, and one problem more where some are left out. */
  get list(): readonly Problem[] {
    if (this.#leftOut === undefined) return this.#kept;
    const { file, line, column } = this.#leftOut;
    const message = `more than ${MAX_PROBLEMS} problems; correct these first`;
    const severity = this.failed ? 'error' : 'warning';
    return [...this.#kept, { severity, code: 'too_many_problems', message, file, line, column }];
  }

  add(problem: Problem): void {
    const isError = problem.severity === 'error';
    if (isError) this.#errors += 1;
    if (this.#kept.length < MAX_PROBLEMS) {
      this.#kept.push(problem);
      return;
    }
    this.#leftOut ??= problem;
    const warning = isError ? this.#kept.findLastIndex(({ severity }) => severity === 'warning') : -1;
    if (warning < 0) return;
    this.#kept.splice(warning, 1);
    this.#kept.push(problem);
  }
}
