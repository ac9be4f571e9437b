import { createHash } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ruleFiles } from '../rulebook/rule-files.ts';

/** A watch that runs until it is closed. */
export interface ConfigWatch {
  /** Watches other files from now on: those that the configuration in use refers to. */
  follow(files: readonly string[]): void;
  close(): void;
  /** Resolves when it knows what the files that it now follows hold: whatever changes from then on is told. */
  readonly ready: Promise<void>;
}

export interface WatchOptions {
  /** How long nothing may happen before a change is told: editors write in several steps. */
  readonly debounceMs?: number;
  /** How often files are looked at where the file system tells no changes (network mounts). */
  readonly pollMs?: number;
}

/**
 * Calls `onChange` when the content of a file, or of a folder's rule files, is another than before. Folders are
 * watched, not files: editors and Kubernetes replace a file by renaming, which a watch on the file itself would lose.
 */
export function watchConfig(files: readonly string[], onChange: () => void, options: WatchOptions = {}): ConfigWatch {
  const { debounceMs = 200, pollMs = 10_000 } = options;
  let followed = files;
  let watchers: FSWatcher[] = [];
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let last = digestOf(files);

  const look = async (): Promise<void> => {
    const [before, now] = [await last, await digestOf(followed)];
    if (closed || before === now) return;
    last = Promise.resolve(now);
    onChange();
  };
  // One look at a time, in order: two that overlap would each see the change.
  let looking: Promise<void> = Promise.resolve();
  const lookSoon = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      looking = looking.then(look, look);
    }, debounceMs);
  };
  const open = (): void => {
    for (const watcher of watchers) watcher.close();
    watchers = [];
    for (const folder of new Set(followed.flatMap((file) => [file, dirname(file)]))) {
      try {
        const watcher = watch(folder, { persistent: false }, lookSoon);
        // A folder that goes away ends its watcher; polling goes on.
        watcher.on('error', () => watcher.close());
        watchers.push(watcher);
      } catch (error) {
        // Not there (yet), or a file system without watches: polling sees it.
        if (!(error instanceof Error && 'code' in error)) throw error;
      }
    }
  };
  open();
  const poll = setInterval(lookSoon, pollMs);
  poll.unref();
  return {
    get ready() {
      return last.then(() => undefined);
    },
    follow: (next) => {
      // What is known of the same files stays: they may have changed again since they were read.
      if (next.length !== followed.length || next.some((file) => !followed.includes(file))) last = digestOf(next);
      followed = next;
      open();
    },
    close: () => {
      closed = true;
      clearTimeout(timer);
      clearInterval(poll);
      for (const watcher of watchers) watcher.close();
    },
  };
}

/** A digest of the contents of files, and of the rule files in folders; what is not there counts as such. */
export async function digestOf(files: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const file of files.toSorted()) {
    hash.update(`${file}\0`);
    for (const part of await contentsOf(file)) hash.update(part);
  }
  return hash.digest('hex');
}

async function contentsOf(file: string): Promise<readonly (string | Uint8Array)[]> {
  try {
    return [await readFile(file)];
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    if (code !== 'EISDIR') return [code];
  }
  const parts: (string | Uint8Array)[] = [];
  // A folder is a rulebook's: what is read of it counts, linked files too, which is how Kubernetes mounts them.
  for (const name of await ruleFiles(file).catch(() => [])) {
    const content = await readFile(join(file, name)).catch(() => 'unreadable');
    parts.push(`${name}\0`, content);
  }
  return parts;
}
