/** Where something stands in a source: lines and columns count from 1, columns in UTF-16 units. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** Everything that compiling a rulebook can complain about; the code is stable, the message is for people. */
export type ProblemCode =
  | 'action_variable'
  | 'argument_list'
  | 'assigned_call'
  | 'assigned_fact'
  | 'body_not_allowed'
  | 'body_missing'
  | 'check_cell'
  | 'condition_syntax'
  | 'condition_unknown'
  | 'control_character'
  | 'decision_cell'
  | 'decorator'
  | 'definition'
  | 'duplicate_flow'
  | 'else_after_when'
  | 'ellipsis'
  | 'file_unreadable'
  | 'flow_depth'
  | 'flow_name'
  | 'flow_name_case'
  | 'flow_variable'
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

/** Collects problems in the order in which they are found, up to a cap that itself counts as an error. */
export class Problems {
  readonly list: Problem[] = [];
  #errors = 0;

  error(code: ProblemCode, at: Position, message: string): void {
    this.add({ severity: 'error', code, message, file: at.file, line: at.line, column: at.column });
  }

  warn(code: ProblemCode, at: Position, message: string): void {
    this.add({ severity: 'warning', code, message, file: at.file, line: at.line, column: at.column });
  }

  get failed(): boolean {
    return this.#errors > 0;
  }

  add(problem: Problem): void {
    if (problem.severity === 'error') this.#errors += 1;
    if (this.list.length < MAX_PROBLEMS) {
      this.list.push(problem);
    } else if (this.list.length === MAX_PROBLEMS) {
      // Warnings never hide an error: the marker takes the severity of what it stands for.
      const severity = this.#errors > 0 ? 'error' : 'warning';
      const message = `more than ${MAX_PROBLEMS} problems; correct these first`;
      this.list.push({ ...problem, severity, code: 'too_many_problems', message });
    }
  }
}
