import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Config } from '../config/config.ts';
import type { EdgeTls } from '../http/server-limits.ts';
import { messageOf } from '../message-of.ts';
import { ConfigRefused } from './whole-config.ts';

/** Reads the certificate and key to listen with. Throws `ConfigRefused` where they cannot be read or do not fit. */
export async function readTls({ listen, positionOf }: Config): Promise<EdgeTls | undefined> {
  const { tls } = listen;
  if (tls === undefined) return undefined;
  try {
    const [cert, key] = await Promise.all([readFile(tls.certFile), readFile(tls.keyFile)]);
    const read =
      tls.clientCaFile === undefined ? { cert, key } : { cert, key, clientCa: await readFile(tls.clientCaFile) };
    // Certificates and keys that are replaced one after the other do not fit for a moment: that must not take the listener.
    createSecureContext({ cert, key, ...('clientCa' in read ? { ca: read.clientCa } : {}) });
    return read;
  } catch (error) {
    const why = messageOf(error);
    const message = `\`${tls.certFile}\` and \`${tls.keyFile}\` cannot be used together to listen with: ${why}`;
    throw new ConfigRefused([{ severity: 'error', code: 'bad_tls', message, ...positionOf(['listen', 'tls']) }]);
  }
}
