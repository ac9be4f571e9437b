import { backupStore } from '../store/backup-store.ts';
import { checkStore, type StoreReport } from '../store/check-store.ts';
import { StoreFault, StoreSetupError } from '../store/port.ts';
import { CliFault } from './command.ts';
import { print, printJson, renderColumns } from './output.ts';
import { requireWhole } from './require-config.ts';

/** Looks at the store of a config, prints what is found, and resolves with the exit code. Throws `CliFault`. */
export async function runStoreCheck(options: { readonly config: string; readonly json?: boolean }): Promise<0 | 1> {
  const { target, encryptionKey } = (await requireWhole(options.config)).config.store;
  const report = await look(target.kind === 'sqlite' ? target.file : target.url.reveal(), encryptionKey);
  await (options.json === true ? printJson(report) : print(render(report)));
  return report.problems.length === 0 ? 0 : 1;
}

/** Copies the store of a config while it is in use, and looks at the copy. Throws `CliFault`. */
export async function runStoreBackup(file: string, options: { readonly config: string }): Promise<0 | 1> {
  const { target, encryptionKey } = (await requireWhole(options.config)).config.store;
  const place = target.kind === 'sqlite' ? target.file : target.url.reveal();
  try {
    await backupStore(place, file, encryptionKey);
  } catch (error) {
    if (error instanceof StoreFault || error instanceof StoreSetupError) throw new CliFault(2, error.message);
    throw error;
  }
  const report = await look(file, encryptionKey);
  await print(`${file}\n${render(report)}`);
  return report.problems.length === 0 ? 0 : 1;
}

async function look(place: string, encryptionKey: Uint8Array | undefined): Promise<StoreReport> {
  try {
    return await checkStore(place, encryptionKey);
  } catch (error) {
    if (error instanceof StoreFault || error instanceof StoreSetupError) throw new CliFault(2, error.message);
    throw error;
  }
}

function render({ kind, schema, encrypted, rows, problems }: StoreReport): string {
  const what = `${kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}, schema ${schema}, ${encrypted ? 'encrypted' : 'not encrypted'}`;
  const head = problems.length === 0 ? `sound: ${what}\n` : `NOT SOUND: ${what}\n`;
  return `${head}${problems.map((problem) => `  ${problem}\n`).join('')}${renderColumns(
    Object.entries(rows).map(([name, count]) => [name, String(count)]),
  )}`;
}
