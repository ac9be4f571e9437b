import type { JsonValue } from '../../receipts/json-value.ts';
import { FORMATS, isDescriptive } from './formats.ts';
import { compilePattern, type LinearPattern, PatternError } from './pattern.ts';

/** Properties whose names match a pattern. */
export interface PatternProperty<T> {
  readonly source: string;
  readonly pattern: LinearPattern;
  readonly node: T;
}

/** Takes out the assertions that are well-formed but cannot be run. */
export function checkEnforceable(assertions: Record<string, JsonValue>, faults: string[]): void {
  const { pattern, format } = assertions;
  if (typeof pattern === 'string') {
    const reason = patternFault(pattern);
    if (reason !== undefined) {
      faults.push(`the pattern \`${pattern.slice(0, 200)}\` is not run: ${reason}`);
      delete assertions['pattern'];
    }
  }
  if (typeof format === 'string' && !FORMATS.has(format)) {
    if (!isDescriptive(format)) faults.push(`the format \`${format.slice(0, 200)}\` is not known`);
    delete assertions['format'];
  }
}

function patternFault(source: string): string | undefined {
  try {
    compilePattern(source);
    return undefined;
  } catch (cause) {
    if (cause instanceof PatternError) return cause.message;
    throw cause;
  }
}

/** The property patterns that can be run; why the others cannot goes to `faults`. */
export function readPatternProperties<T>(
  nodes: ReadonlyMap<string, T> | undefined,
  faults: string[],
): PatternProperty<T>[] {
  const read: PatternProperty<T>[] = [];
  for (const [source, node] of nodes ?? []) {
    const reason = patternFault(source);
    if (reason === undefined) read.push({ source, pattern: compilePattern(source), node });
    else faults.push(`the property pattern \`${source.slice(0, 200)}\` is not run: ${reason}`);
  }
  return read;
}
