import Database from 'better-sqlite3';
import { messageOf } from '../message-of.ts';
import { StoreFault, StoreSetupError } from './port.ts';

/** An error of one commit's own, which says nothing of the store. */
export function isRefusal(error: unknown): boolean {
  if (error instanceof Database.SqliteError) return error.code.startsWith('SQLITE_CONSTRAINT');
  return !(error instanceof StoreFault);
}

export function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_BUSY');
}

/** SQLite's own code, or nothing. */
export function codeOf(error: unknown): string {
  return error instanceof Database.SqliteError ? error.code : '';
}

const FAULTS: readonly (readonly [code: string, sentence: string])[] = [
  ['SQLITE_BUSY', 'is locked by another process'],
  ['SQLITE_READONLY', 'cannot be written to (read-only)'],
  ['SQLITE_FULL', 'cannot grow: the disk is full'],
  ['SQLITE_CANTOPEN', 'cannot be opened; look at its directory and its permissions'],
  ['SQLITE_CORRUPT', 'is damaged; restore it from a backup'],
  ['SQLITE_NOTADB', 'is no SQLite file'],
  ['SQLITE_IOERR', 'cannot be read or written'],
];

/** What is wrong with the file, in a sentence. */
export function describeFault(error: unknown, path: string): string {
  if (error instanceof StoreFault || error instanceof StoreSetupError) return error.message;
  const known = FAULTS.find(([code]) => codeOf(error).startsWith(code));
  return known === undefined
    ? `\`${path}\` cannot be used: ${messageOf(error)}`
    : `\`${path}\` ${known[1]} (${codeOf(error)})`;
}
