import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';

/**
 * TLS between processes that share a key and need no certificates (RFC 4279; with forward secrecy, RFC 5489). OpenSSL's keys
 * of this kind are those of TLS 1.2.
 */
export const PSK_OPTIONS: SecureContextOptions = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305:PSK-AES256-GCM-SHA384',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
};

/** The connecting side's, made once. */
export function pskContext(): SecureContext {
  return createSecureContext(PSK_OPTIONS);
}
