import { readdir } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';

/** What the names of rulebooks' files end in. */
export const ENDINGS: ReadonlySet<string> = new Set(['.co', '.csv', '.xlsx', '.yaml', '.yml']);

/** The rule files under a folder, sorted, hidden ones and linked folders left out. */
export async function ruleFiles(folder: string): Promise<readonly string[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const files: string[] = [];
  for (const entry of found) {
    if (entry.isDirectory() || !ENDINGS.has(extname(entry.name).toLowerCase())) continue;
    const path = relative(folder, join(entry.parentPath, entry.name));
    if (!path.split(sep).some((part) => part.startsWith('.'))) files.push(path);
  }
  return files.sort();
}
