import { existsSync } from 'node:fs';
import { KeyFault, parseSigningKey } from '../../receipts/keys.ts';
import type { Issuer, Keys } from './config.ts';
import type { RawConfig, RawIssuer } from './raw.ts';
import type { Reading } from './reading.ts';
import { suggest } from './suggest.ts';

/** Keys, each checked as it is loaded. A signing key that is not there yet is no fault: it is made on first start. */
export function readKeys(raw: RawConfig, audience: string, reading: Reading): Keys {
  const keys = raw.keys ?? {};
  const signing = keys.signing ?? './keys/gateway.pem';
  const signingFile = reading.output(signing);
  if (existsSync(signingFile)) {
    const text = reading.text(signing, ['keys', 'signing']);
    try {
      if (text !== undefined) parseSigningKey(text);
    } catch (error) {
      if (!(error instanceof KeyFault)) throw error;
      reading.log.error('bad_key', ['keys', 'signing'], `the key \`${signing}\` cannot be used: ${error.message}`);
    }
  }
  const id = keys.id ?? audience;
  const previous = (keys.previous ?? []).flatMap((entry, index) => {
    const publicKey = reading.publicKey(entry.public_key, ['keys', 'previous', index, 'public_key']);
    const notAfterMs = reading.instantMs(entry.not_after, ['keys', 'previous', index, 'not_after']);
    return publicKey === undefined || notAfterMs === undefined ? [] : [{ publicKey, notAfterMs }];
  });
  checkRotation(keys.issuers ?? [], reading);
  const issuers = (keys.issuers ?? []).flatMap((issuer, index) => readIssuer(raw, issuer, index, id, reading));
  return { signingFile, id, previous, issuers };
}

/** Tells entries of one issuer that differ in what it may speak for: they are its keys over a rotation, not two issuers. */
function checkRotation(issuers: readonly RawIssuer[], reading: Reading): void {
  const first = new Map<string, RawIssuer>();
  for (const [index, issuer] of issuers.entries()) {
    const known = first.get(issuer.id);
    if (known === undefined) {
      first.set(issuer.id, issuer);
      continue;
    }
    const path = ['keys', 'issuers', index];
    for (const word of ['agents', 'tools'] as const) {
      if (JSON.stringify((known[word] ?? []).toSorted()) === JSON.stringify((issuer[word] ?? []).toSorted())) continue;
      reading.log.error(
        'issuer_differs',
        [...path, word],
        `the entries of \`${issuer.id}\` list different ${word}; they are one issuer’s keys`,
      );
    }
    if (known.public_key === issuer.public_key) {
      reading.log.error('duplicate_name', [...path, 'public_key'], `\`${issuer.id}\` has this key already`);
    }
  }
}

function readIssuer(
  raw: RawConfig,
  issuer: RawIssuer,
  index: number,
  own: string,
  reading: Reading,
): readonly Issuer[] {
  const path = ['keys', 'issuers', index];
  if (issuer.id === own) {
    reading.log.error(
      'issuer_is_gateway',
      [...path, 'id'],
      `\`${own}\` is the gateway’s own issuer id; its earlier keys belong under \`previous\``,
    );
  }
  for (const [at, agent] of (issuer.agents ?? []).entries()) {
    if (!Object.hasOwn(raw.agents, agent)) {
      reading.log.error(
        'unknown_agent',
        [...path, 'agents', at],
        `there is no agent \`${agent}\`${suggest(agent, Object.keys(raw.agents))}`,
      );
    }
  }
  for (const word of ['agents', 'tools'] as const) {
    if ((issuer[word] ?? []).length > 0) continue;
    reading.log.warning(
      'issuer_lists_nothing',
      [...path, word],
      `the issuer \`${issuer.id}\` lists no ${word}: none of its receipts is accepted`,
      'key',
    );
  }
  const instant = (word: 'not_before' | 'not_after' | 'revoked_at'): number | undefined => {
    const text = issuer[word];
    return text === undefined ? undefined : reading.instantMs(text, [...path, word]);
  };
  const publicKey = reading.publicKey(issuer.public_key, [...path, 'public_key']);
  const [notBeforeMs, notAfterMs, revokedAtMs] = [instant('not_before'), instant('not_after'), instant('revoked_at')];
  if (notBeforeMs !== undefined && notAfterMs !== undefined && notBeforeMs >= notAfterMs) {
    reading.log.error(
      'wrong_value',
      [...path, 'not_after'],
      '`not_after` is not later than `not_before`: the key is never valid',
    );
  }
  if (publicKey === undefined) return [];
  return [
    {
      index,
      id: issuer.id,
      publicKey,
      agents: issuer.agents ?? [],
      tools: issuer.tools ?? [],
      ...(notBeforeMs === undefined ? {} : { notBeforeMs }),
      ...(notAfterMs === undefined ? {} : { notAfterMs }),
      ...(revokedAtMs === undefined ? {} : { revokedAtMs }),
    },
  ];
}
