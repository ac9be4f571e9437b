import type { JsonObject } from '../../receipts/json-value.ts';
import { AuditFault } from './fault.ts';
import { type Draft, draftObject } from './line.ts';

/**
 * A row of the store's outbox in, its draft out. Throws `AuditFault` where the row is not a line that this log
 * prepared: somebody wrote to the table.
 */
export function parseStoredLine(line: string): Draft {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    value = undefined;
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const draft = draftObject(value as JsonObject);
    // Equal only where the row is canonical, so that what is written is what the transaction held.
    if (draft.line === line && !('prev' in value) && !('seq' in value)) return draft;
  }
  throw new AuditFault('audit_foreign', 'a row of the outbox in the store is not a line that the audit log prepared');
}
