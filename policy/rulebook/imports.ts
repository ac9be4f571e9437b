import { quoted } from './nearest.ts';
import type { Problems } from './problem.ts';
import { stubFlows } from './stubs.ts';
import type { FileSyntax } from './syntax.ts';

/** The part of a path before its last name; empty for a bare name. */
function folderOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash < 0 ? '' : path.slice(0, slash);
}

/** The folders that an import may start from: the importing file's own, and each above it. */
export function importBases(file: string): readonly string[] {
  const bases: string[] = [];
  for (let folder = folderOf(file); ; folder = folderOf(folder)) {
    bases.push(folder);
    if (folder === '' || folder === '/') break;
  }
  return bases;
}

/** Whether a source file is what an import of `path` means, from one of the folders. */
function isImported(file: string, path: string, bases: readonly string[]): boolean {
  return bases.some((base) => {
    const whole = base === '' ? path : base === '/' ? `/${path}` : `${base}/${path}`;
    return file === whole || file === `${whole}.co` || file.startsWith(`${whole}/`);
  });
}

/** Whether `path` is written such that it can only lie inside the rulebook's own folder. */
export function isInnerPath(path: string): boolean {
  return path !== '' && !path.startsWith('/') && !path.includes('\\') && !path.split('/').includes('..');
}

/**
 * The flow names that the imports of all files bring in. An import that is neither a bundled module nor one of the
 * sources is an error: its flows would be missing, and whatever they forbid with them.
 */
export function resolveImports(files: readonly FileSyntax[], problems: Problems): ReadonlySet<string> {
  const known = new Set<string>();
  const sources = files.map((file) => file.file);
  for (const file of files) {
    const bases = importBases(file.file);
    for (const { path, at } of file.imports) {
      const stubs = stubFlows(path);
      if (stubs !== undefined) {
        for (const name of stubs) known.add(name);
      } else if (!isInnerPath(path) || !sources.some((source) => isImported(source, path, bases))) {
        problems.error(
          'import_unresolved',
          at,
          `nothing is found under ${quoted(path)}; an import names a file or folder beside this one, or a bundled module`,
        );
      }
    }
  }
  return known;
}

/**
 * The paths that a source's lines import, for a loader that must fetch them before anything is parsed. A line inside a
 * text may be among them; what it names is then not there.
 */
export function writtenImports(text: string): readonly string[] {
  const paths: string[] = [];
  for (const row of text.split('\n')) {
    const rest = /^(?:import|include)\s(.*)$/.exec(row.trimEnd())?.[1];
    if (rest !== undefined) paths.push(importPath(rest));
  }
  return paths;
}

/** The path that is meant by what follows `import`: a text as written, or names joined by full stops. */
export function importPath(written: string): string {
  const path = (written.split('#')[0] ?? '').trim();
  const quote = path[0];
  if (quote === '"' || quote === "'") return path.endsWith(quote) ? path.slice(1, -1) : path.slice(1);
  return path.endsWith('.co') ? path : path.split('.').join('/');
}
