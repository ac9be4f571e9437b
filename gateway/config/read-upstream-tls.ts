import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { messageOf } from '../message-of.ts';
import type { UpstreamTls } from './config.ts';
import type { ConfigPath } from './problem.ts';
import type { RawRoute } from './raw.ts';
import type { Reading } from './reading.ts';
import { Secret } from './secret.ts';

/** Whom a route believes to be its upstream, and what it shows it. Faults: files that do not fit, an upstream without TLS. */
export function readUpstreamTls(
  route: RawRoute,
  path: ConfigPath,
  reading: Reading,
): { readonly upstreamTls?: UpstreamTls } {
  const given = route.upstream_tls;
  if (given === undefined) return {};
  const at = [...path, 'upstream_tls'];
  if (route.upstream?.startsWith('https://') !== true) {
    const message = 'the words of `upstream_tls` are for an `upstream` that begins with `https://`';
    reading.log.error('wrong_value', at, message, 'key');
  }
  if ((given.cert === undefined) !== (given.key === undefined)) {
    reading.log.error(
      'missing_word',
      at,
      '`cert` and `key` come together: the certificate to show, and its key',
      'key',
    );
  }
  const text = (word: 'ca' | 'cert' | 'key'): string | undefined => {
    const name = given[word];
    return name === undefined ? undefined : reading.text(name, [...at, word]);
  };
  const [ca, cert, key] = [text('ca'), text('cert'), text('key')];
  const check = (word: 'ca' | 'cert', use: () => unknown): void => {
    try {
      use();
    } catch (error) {
      const why = messageOf(error);
      reading.log.error('bad_tls', [...at, word], `\`${given[word]}\` cannot be used: ${why}`);
    }
  };
  // What is no certificate would be left out without a word, and then no upstream be believed.
  if (ca !== undefined) check('ca', () => pemBlocks(ca).map((block) => new X509Certificate(block)));
  if (cert !== undefined && key !== undefined) check('cert', () => createSecureContext({ cert, key }));
  return {
    upstreamTls: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined || key === undefined ? {} : { cert, key: new Secret(key) }),
      ...(given.server_name === undefined ? {} : { serverName: given.server_name }),
    },
  };
}

const PEM_END = '-----END CERTIFICATE-----';

/** The certificates of a file, each by itself; a file without any is one that does not parse. */
function pemBlocks(text: string): readonly string[] {
  const blocks = text.split(PEM_END).slice(0, -1);
  return blocks.length === 0 ? [text] : blocks.map((block) => `${block}${PEM_END}\n`);
}
