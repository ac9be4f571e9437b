import { KeyFault } from '../../receipts/keys.ts';
import { AuditFault } from '../audit/fault.ts';
import type { Config } from '../config/config.ts';
import type { ConfigPath } from '../config/problem.ts';
import { messageOf } from '../message-of.ts';
import { StoreFault, StoreSetupError } from '../store/port.ts';
import { auditFileOf } from '../workers/worker-audit.ts';

/** Why a gateway with a good config did not start: what is wrong, where the config says it, what to do. */
export class StartFault extends Error {
  readonly code = 'start_failed';

  constructor(config: Config, path: ConfigPath, message: string, cause: unknown) {
    const { file, line, column } = config.positionOf(path);
    super(`${file}:${line}:${column}: ${message}`, { cause });
    this.name = 'StartFault';
  }
}

/** The signing key could not be read or made. */
export function signingFault(config: Config, error: unknown): StartFault {
  const file = config.keys.signingFile;
  const remedy =
    error instanceof KeyFault
      ? 'name another file, or move it away and a key is made'
      : 'let this user read it, or its folder be written';
  return new StartFault(
    config,
    ['keys'],
    `the signing key \`${file}\` cannot be used: ${messageOf(error)}; ${remedy}`,
    error,
  );
}

/** The store could not be opened. A PostgreSQL address is not shown: it holds a password. */
export function storeFault(config: Config, error: unknown): StartFault {
  const { target } = config.store;
  const place = target.kind === 'sqlite' ? `the store \`${target.file}\`` : 'the PostgreSQL store';
  const remedy =
    error instanceof StoreSetupError
      ? 'it is left as it is'
      : error instanceof StoreFault && target.kind === 'postgres'
        ? 'is the server up, and does `store` say where it is?'
        : 'each gateway needs a store file of its own that this user may write';
  return new StartFault(config, ['store'], `${place} cannot be opened: ${messageOf(error)}; ${remedy}`, error);
}

/** The audit log of a worker, or of the one process, could not be opened. */
export function auditFault(config: Config, worker: number, error: unknown): StartFault {
  const remedy =
    error instanceof AuditFault && error.code === 'audit_locked'
      ? 'end the other process, or name another file in `audit.file`'
      : 'without a log nothing is let through, so the gateway does not start';
  return new StartFault(
    config,
    ['audit'],
    `the audit log \`${auditFileOf(config.audit.file, worker)}\` cannot be opened: ${messageOf(error)}; ${remedy}`,
    error,
  );
}

/** The address could not be listened on. */
export function listenFault(config: Config, error: unknown): StartFault {
  const { host, port } = config.listen;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const why = LISTEN_REMEDIES[code] ?? messageOf(error);
  return new StartFault(config, ['listen'], `\`${host}:${port}\` cannot be listened on: ${why}`, error);
}

const LISTEN_REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens there; end it, or change `listen`',
  EACCES: 'this user may not listen on such a port; take one from 1024 on',
  EADDRNOTAVAIL: 'this machine has no such address; change `listen`',
  ENOTFOUND: 'there is no host of that name; change `listen`',
};
