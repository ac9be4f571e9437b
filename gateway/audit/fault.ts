/** Why a line could not be written, or the log not be opened. */
export type AuditFaultCode =
  /** The line was not written; the log is down until its target can be written to again. */
  | 'audit_unavailable'
  /** Another living process writes this file. */
  | 'audit_locked'
  /** What stands at the path is not an audit log that this one can go on from. */
  | 'audit_foreign'
  /** The log was closed. */
  | 'audit_closed';

/** What every function of the audit log throws or rejects with. A call whose line meets one is refused. */
export class AuditFault extends Error {
  readonly code: AuditFaultCode;

  constructor(code: AuditFaultCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'AuditFault';
    this.code = code;
  }
}

/** The system's own code of an I/O error (`ENOSPC`), or its message where it has none. */
export function systemCode(error: unknown): string {
  if (error instanceof Error) {
    const code = 'code' in error ? error.code : undefined;
    return typeof code === 'string' ? code : error.message;
  }
  return String(error);
}
