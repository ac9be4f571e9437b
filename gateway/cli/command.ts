import type { Command } from 'commander';

/** A command of `toolgate`, in a file of its own. Whatever it runs is imported when it runs, so that `--help` is quick. */
export interface CliCommand {
  readonly name: string;
  /** Adds the command with its options, its help and its action. An action sets `process.exitCode` where that is not 0. */
  readonly register: (program: Command) => void;
}

/** What ends a command with one sentence on standard error, and an exit code: 1 for no, 2 for a wrong use or no answer. */
export class CliFault extends Error {
  readonly code = 'cli';
  readonly exit: 1 | 2;

  constructor(exit: 1 | 2, message: string) {
    super(message);
    this.name = 'CliFault';
    this.exit = exit;
  }
}

/** Examples as the end of a command's help. */
export function renderExamples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}\n`;
}
