import { FAULTS } from '../gateway/http/problems.ts';
import { STEPS } from '../policy/check.ts';
import { isReasonCode, REASONS, type ReasonCode, statusOf } from '../policy/reasons.ts';
import type { Decision } from '../receipts/history.ts';

/** The rows of the check, in their order, as a Markdown table. */
export function renderSteps(): string {
  return renderTable(
    ['#', 'step', 'what is checked', 'answers', 'reasons'],
    STEPS.map(({ name, checks, answers, reasons }, index) => [
      String(index + 1),
      name,
      checks,
      answers,
      reasons.map((reason) => `\`${reason}\``).join(', '),
    ]),
  );
}

/** Every reason that an answer can carry, as a Markdown table. */
export function renderReasons(): string {
  return renderTable(
    ['reason', 'decision', 'HTTP status', 'what the caller is told'],
    Object.keys(REASONS)
      .filter(isReasonCode)
      .map((code) => {
        const decisions = decisionsOf(code);
        return [
          `\`${code}\``,
          decisions.join(', '),
          decisions.map((decision) => statusOf(decision, code)).join(', '),
          REASONS[code].sentence,
        ];
      }),
  );
}

/** Every fault of a request that a problem can name, as a Markdown table. */
export function renderFaults(): string {
  return renderTable(
    ['code', 'HTTP status', 'title'],
    Object.entries(FAULTS).map(([code, { status, title }]) => [`\`${code}\``, String(status), title]),
  );
}

/** What a reason decides: in the rows of the check that answer it, else as the table of reasons says. */
function decisionsOf(code: ReasonCode): readonly Decision[] {
  const answers = STEPS.filter(({ reasons }) => reasons.includes(code)).map((step) => step.answers);
  return answers.length === 0 ? [REASONS[code].decision] : [...new Set(answers)];
}

function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`).join('\n');
}
