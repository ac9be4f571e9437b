import { portableCrypto } from '../../receipts/crypto-portable.ts';
import type { IssuerKey } from '../../receipts/history-verify.ts';
import { parsePublicKey } from '../../receipts/keys.ts';

/** Public keys, each as base64url or PEM text, ready to verify. Throws `KeyFault`. */
export function readKeys(given: string | readonly string[]): readonly IssuerKey[] {
  const texts = typeof given === 'string' ? [given] : given;
  return texts.map((text) => ({ key: portableCrypto.publicKey(parsePublicKey(text)) }));
}
