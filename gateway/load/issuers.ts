import type { Crypto, SigningKey } from '../../receipts/crypto.ts';
import type { Issuer, IssuerKey } from '../../receipts/history-verify.ts';
import type { Config, Issuer as ConfigIssuer } from '../config/config.ts';

/** Who may sign what (docs/security-model.md). */
export interface Issuers {
  readonly ownKeys: readonly IssuerKey[];
  /** The gateway alone: whose histories a check goes on from. */
  readonly check: ReadonlyMap<string, Issuer>;
  /** The gateway and the issuers of the config: whose receipts are read. */
  readonly receipt: ReadonlyMap<string, Issuer>;
}

/** Makes the verifying keys of a config. Several entries of one issuer id are its keys over a rotation. */
export function makeIssuers(
  crypto: Crypto,
  config: Config,
  signing: SigningKey,
  issuers: readonly ConfigIssuer[],
): Issuers {
  const previous = config.keys.previous.map(
    ({ publicKey, notAfterMs }): IssuerKey => ({ key: crypto.publicKey(publicKey), notAfter: notAfterMs }),
  );
  const ownKeys = [{ key: crypto.publicKey(signing.publicBytes) }, ...previous];
  const own: Issuer = { keys: ownKeys, limits: 'none' };
  const receipt = new Map<string, Issuer>();
  for (const issuer of issuers) {
    const before = receipt.get(issuer.id);
    const keys = before === undefined ? [] : before.keys;
    const limits = { agents: new Set(issuer.agents), tools: new Set(issuer.tools) };
    receipt.set(issuer.id, { keys: [...keys, issuerKey(crypto, issuer)], limits });
  }
  receipt.set(config.keys.id, own);
  return { ownKeys, check: new Map([[config.keys.id, own]]), receipt };
}

function issuerKey(crypto: Crypto, issuer: ConfigIssuer): IssuerKey {
  return {
    key: crypto.publicKey(issuer.publicKey),
    ...(issuer.notBeforeMs === undefined ? {} : { notBefore: issuer.notBeforeMs }),
    ...(issuer.notAfterMs === undefined ? {} : { notAfter: issuer.notAfterMs }),
    ...(issuer.revokedAtMs === undefined ? {} : { revokedAt: issuer.revokedAtMs }),
  };
}
