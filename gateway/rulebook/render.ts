import type { RulebookDecision } from '../../policy/rulebook/decide.ts';
import type { Explanation } from '../../policy/rulebook/explain.ts';
import type { Problem } from '../../policy/rulebook/problem.ts';

/** One line for each problem, `file:line:column: severity: message [code]`, as editors and build logs read it. */
export function renderProblems(problems: readonly Problem[]): string {
  return problems
    .map(
      ({ file, line, column, severity, message, code }) =>
        `${file}:${line}:${column}: ${severity}: ${message} [${code}]\n`,
    )
    .join('');
}

/** A decision in a sentence. */
function renderDecision(tool: string, decision: RulebookDecision): string {
  switch (decision.kind) {
    case 'ungoverned':
      return `${tool}: no rule names this tool; the rest of the check decides it\n`;
    case 'allow':
      return `${tool}: allowed by the rulebook (${decision.flow}, line ${decision.line})\n`;
    case 'confirm':
      return `${tool}: a person is asked: ${decision.question} (${decision.flow}, line ${decision.line})\n`;
    case 'refuse': {
      const because = decision.because === undefined ? '' : `: ${decision.because}`;
      return `${tool}: refused, ${decision.reason}${because} (${decision.flow}, line ${decision.line})\n`;
    }
  }
}

/** A decision with the way to it, flow by flow, line by line. */
export function renderExplanation(tool: string, explanation: Explanation): string {
  const parts = [renderDecision(tool, explanation.decision)];
  for (const { flow, file, steps } of explanation.flows) {
    parts.push(`\n${flow} (${file})\n`);
    for (const step of steps) parts.push(`${'  '.repeat(step.depth + 1)}line ${step.line}: ${step.what}\n`);
    if (steps.length === 0) parts.push('  nothing on the way\n');
  }
  return parts.join('');
}
