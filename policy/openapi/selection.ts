import { ApiError, type ApiSelection } from './api.ts';

/** What a pattern is held against. */
export interface Selectable {
  readonly name: string;
  readonly operationId: string | undefined;
  readonly method: string;
  readonly pathTemplate: string;
  readonly tags: readonly string[];
}

/** Whether a text matches a glob, in which `*` stands for any text. Linear in both, times at most the stars. */
function matchesGlob(glob: string, text: string): boolean {
  const parts = glob.split('*');
  const first = parts[0] ?? '';
  if (parts.length === 1) return glob === text;
  const last = parts.at(-1) ?? '';
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

/** Whether one pattern of `include` or `exclude` takes an operation. */
function matchesPattern(pattern: string, operation: Selectable): boolean {
  if (pattern.startsWith('tag:')) return operation.tags.some((tag) => matchesGlob(pattern.slice(4), tag));
  if (/\s\//.test(pattern) || pattern.startsWith('/')) {
    const [method, path] = pattern.startsWith('/') ? ['*', pattern] : splitOnce(pattern);
    return matchesGlob(method.toUpperCase(), operation.method) && matchesGlob(path, operation.pathTemplate);
  }
  return (
    matchesGlob(pattern, operation.name) ||
    (operation.operationId !== undefined && matchesGlob(pattern, operation.operationId))
  );
}

function splitOnce(pattern: string): [string, string] {
  const at = pattern.search(/\s/);
  return [pattern.slice(0, at), pattern.slice(at).trim()];
}

/** Whether a selection takes an operation; the patterns that fit it are taken out of `unmet`. */
export function isSelected(selection: ApiSelection, operation: Selectable, unmet: Set<string>): boolean {
  const meets = (pattern: string): boolean => {
    const met = matchesPattern(pattern, operation);
    if (met) unmet.delete(pattern);
    return met;
  };
  // Every pattern is asked, so that those that fit nothing are known.
  const taken = selection.include === undefined || selection.include.filter(meets).length > 0;
  const left = selection.exclude !== undefined && selection.exclude.filter(meets).length > 0;
  return taken && !left;
}

/** The tool name of an operation: its `operationId`, else the words of method and path; letters, digits, `_`, `.`, `-`. */
export function toolName(operationId: string | undefined, method: string, pathTemplate: string): string {
  const words = operationId ?? `${method.toLowerCase()}_${pathTemplate}`;
  const clean = words.replace(/[^A-Za-z0-9_.-]+/g, '_').replace(/_{2,}/g, '_');
  return clean.replace(/^_+|_+$/g, '') || method.toLowerCase();
}

/** Throws `ApiError` where two operations have one name. */
export function refuseClash(a: Selectable, b: Selectable): never {
  throw new ApiError(
    'api_clash',
    `${a.method} ${a.pathTemplate} and ${b.method} ${b.pathTemplate} are both named \`${a.name}\`; rename one of them`,
  );
}
