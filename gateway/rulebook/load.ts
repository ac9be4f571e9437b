import { readFile, realpath, stat } from 'node:fs/promises';
import { dirname, extname, join, relative, resolve, sep } from 'node:path';
import type { CompiledRulebook, CompileOptions, RulebookSource } from '../../policy/rulebook/compile.ts';
import { compileRulebook } from '../../policy/rulebook/compile.ts';
import { importBases, isInnerPath, writtenImports } from '../../policy/rulebook/imports.ts';
import { quoted } from '../../policy/rulebook/nearest.ts';
import type { Problem, ProblemCode } from '../../policy/rulebook/problem.ts';
import { MAX_BYTES } from '../../policy/rulebook/scan.ts';
import type { RuleSheet } from '../../policy/rulebook/sheet.ts';
import { checkCellFault } from './check-cell.ts';
import { ENDINGS, ruleFiles } from './rule-files.ts';
import type { ReadSheet } from './sheet-table.ts';
import { readYamlSheet } from './sheet-yaml.ts';

/** What a rulebook's files hold, read but not compiled. */
export interface LoadedRulebook {
  readonly sources: readonly RulebookSource[];
  readonly sheets: readonly RuleSheet[];
  /** Faults of the files themselves: missing, too large, no table. */
  readonly problems: readonly Problem[];
  /** Every file that was read, imported ones too; absolute. */
  readonly files: readonly string[];
}

/** A folder with more rule files than this was not meant as one. */
const MAX_FILES = 1000;

class Loader {
  readonly sources: RulebookSource[] = [];
  readonly sheets: RuleSheet[] = [];
  readonly problems: Problem[] = [];
  readonly files: string[] = [];
  readonly #seen = new Set<string>();
  readonly #base: string;

  constructor(base: string) {
    this.#base = base;
  }

  /** Reads a file, or every rule file of a folder in the order of their names. */
  async path(path: string): Promise<void> {
    const full = resolve(this.#base, path);
    const found = await stat(full).catch(() => undefined);
    if (found === undefined) {
      this.#fault('file_unreadable', path, `${quoted(path)} is not there, or may not be read`);
    } else if (found.isDirectory()) {
      const files = await ruleFiles(full);
      if (files.length === 0)
        this.#fault('file_unreadable', path, `no .co, .csv, .xlsx or .yaml file is in ${quoted(path)}`);
      for (const file of files) await this.#file(join(full, file), path);
    } else if (!ENDINGS.has(extname(path).toLowerCase())) {
      this.#fault(
        'file_unreadable',
        path,
        `${quoted(path)} is no rulebook; its name must end in .co, .csv, .xlsx or .yaml`,
      );
    } else {
      await this.#file(full, dirname(path));
    }
  }

  /** `root` is the rulebook's own folder, as written: nothing outside it is read. */
  async #file(full: string, root: string): Promise<void> {
    const name = relative(this.#base, full).split(sep).join('/');
    const real = await realpath(full).catch(() => undefined);
    const realRoot = await realpath(resolve(this.#base, root)).catch(() => undefined);
    if (real === undefined || realRoot === undefined) {
      this.#fault('file_unreadable', name, 'this file is not there, or may not be read');
      return;
    }
    if (this.#seen.has(real)) return;
    this.#seen.add(real);
    this.files.push(full);
    if (!real.startsWith(realRoot.endsWith(sep) ? realRoot : realRoot + sep)) {
      this.#fault('file_unreadable', name, "this file lies outside the rulebook's folder; move it in");
      return;
    }
    if (this.#seen.size > MAX_FILES) {
      if (this.#seen.size === MAX_FILES + 1)
        this.#fault('too_large', name, `a rulebook may have ${MAX_FILES} files at most`);
      return;
    }
    const bytes = await readWhole(real);
    if (bytes === undefined) {
      this.#fault('file_unreadable', name, 'this file may not be read');
    } else if (bytes.length > MAX_BYTES) {
      this.#fault('too_large', name, 'a rulebook file may hold 1 MiB at most; split it');
    } else {
      await this.#content(name, bytes, root);
    }
  }

  async #content(name: string, bytes: Buffer, root: string): Promise<void> {
    const ending = extname(name).toLowerCase();
    if (ending === '.xlsx') {
      // The readers of tables are large, and few rulebooks have any.
      const { readXlsxSheet } = await import('./sheet-xlsx.ts');
      this.#sheet(await readXlsxSheet(name, bytes));
      return;
    }
    let text: string;
    try {
      text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      this.#fault('file_unreadable', name, 'this file is not UTF-8 text; save it as UTF-8');
      return;
    }
    if (ending === '.csv') {
      const { readCsvSheet } = await import('./sheet-csv.ts');
      this.#sheet(readCsvSheet(name, text));
    } else if (ending !== '.co') this.#sheet(readYamlSheet(name, text));
    else {
      this.sources.push({ file: name, text });
      for (const path of writtenImports(text)) await this.#import(name, path, root);
    }
  }

  #sheet(read: ReadSheet): void {
    this.problems.push(...read.problems);
    if (read.sheet !== undefined) this.sheets.push(read.sheet);
  }

  /** Reads what an import names, looking beside the importing file and then upwards as far as the rulebook's folder. */
  async #import(file: string, path: string, root: string): Promise<void> {
    if (!isInnerPath(path)) return;
    const top = relative(this.#base, resolve(this.#base, root)).split(sep).join('/');
    for (const base of importBases(file)) {
      if (top !== '' && base !== top && !base.startsWith(`${top}/`)) return;
      const full = resolve(this.#base, base, path);
      for (const candidate of [full, `${full}.co`]) {
        const found = await stat(candidate).catch(() => undefined);
        if (found?.isFile() === true && candidate.endsWith('.co')) {
          await this.#file(candidate, root);
          return;
        }
        if (found?.isDirectory() === true) {
          for (const inner of await ruleFiles(candidate)) {
            if (inner.endsWith('.co')) await this.#file(join(candidate, inner), root);
          }
          return;
        }
      }
    }
  }

  #fault(code: ProblemCode, file: string, message: string): void {
    this.problems.push({ severity: 'error', code, message, file, line: 1, column: 1 });
  }
}

async function readWhole(file: string): Promise<Buffer | undefined> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined || !found.isFile()) return undefined;
  // A file that is larger anyway is not read: its size alone is the fault.
  if (found.size > MAX_BYTES) return Buffer.alloc(MAX_BYTES + 1);
  return readFile(file).catch(() => undefined);
}

/**
 * Reads a rulebook's files.
 * @param paths files or folders (`.co`, `.csv`, `.xlsx`, `.yaml`), in the order in which they are given
 * @param base the folder that relative paths start from, and that problems name files under
 */
export async function loadRulebookFiles(paths: readonly string[], base: string): Promise<LoadedRulebook> {
  const loader = new Loader(await realpath(base));
  for (const path of paths) await loader.path(path);
  const { sources, sheets, problems, files } = loader;
  return { sources, sheets, problems, files };
}

/** Reads and compiles a rulebook; a file that cannot be read means that there is no record. */
export async function compileRulebookFiles(
  paths: readonly string[],
  base: string,
  options: Omit<CompileOptions, 'sheets'> = {},
): Promise<CompiledRulebook & Pick<LoadedRulebook, 'files'>> {
  const loaded = await loadRulebookFiles(paths, base);
  const compiled = compileRulebook(loaded.sources, { checkFault: checkCellFault, ...options, sheets: loaded.sheets });
  const problems = [...loaded.problems, ...compiled.problems];
  const { files } = loaded;
  const isFaulty = loaded.problems.some(({ severity }) => severity === 'error');
  return isFaulty ? { record: undefined, governed: [], problems, files } : { ...compiled, problems, files };
}
