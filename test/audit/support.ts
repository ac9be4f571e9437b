import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AuditLog } from '../../gateway/audit/audit-log.ts';
import type { AuditEvent } from '../../gateway/audit/events.ts';
import type { AuditOptions } from '../../gateway/audit/options.ts';
import { type VerifyResult, verifyAudit } from '../../gateway/audit/verify.ts';
import type { PublicKey, SigningKey } from '../../receipts/crypto.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';

export const SIGNER: SigningKey = nodeCrypto.signingKey(Buffer.alloc(32, 7));
export const KEY: PublicKey = nodeCrypto.publicKey(SIGNER.publicBytes);

/** A directory that goes when the scope ends. */
export class TempDir implements Disposable {
  readonly path: string = mkdtempSync(join(tmpdir(), 'audit-'));
  file(name = 'audit.jsonl'): string {
    return join(this.path, name);
  }
  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

export function openLog(file: string, options: Partial<AuditOptions> = {}): Promise<AuditLog> {
  return AuditLog.open({ target: { file }, signer: SIGNER, digestKey: randomBytes(32), probeMs: 20, ...options });
}

export function decision(step: number, more: Partial<AuditEvent> = {}): AuditEvent {
  return {
    event: 'decision',
    via: 'route',
    route: 'shop',
    tool: 'shop/get_order',
    agent: 'desk',
    caller: 'shop-app',
    session: 'chat-17',
    step,
    decision: 'allow',
    reasons: ['allow'],
    policy: 'p'.repeat(43),
    latency: { check: 0.0123, store: 1.5 },
    ...more,
  } as AuditEvent;
}

export function linesOf(file: string): string[] {
  return readFileSync(file, 'utf8').split('\n').slice(0, -1);
}

export function membersOf(file: string): Record<string, unknown>[] {
  return linesOf(file).map((line) => JSON.parse(line) as Record<string, unknown>);
}

export function verifyWithKey(...files: string[]): Promise<VerifyResult> {
  return verifyAudit(files, { keys: [KEY] });
}
