import type { Config } from './config.ts';
import type { PositionOf } from './problem.ts';
import type { RawConfig } from './raw.ts';
import { readAgents } from './read-agents.ts';
import { readKeys } from './read-keys.ts';
import { readRoutes } from './read-routes.ts';
import {
  readLicence,
  readListen,
  readRulebook,
  readStore,
  readTimezone,
  readTrustedProxies,
  readWorkers,
} from './read-settings.ts';
import type { Reading } from './reading.ts';

/** The typed configuration of a raw one; what is wrong is told to the reading's log, and the rest read all the same. */
export function readConfig(raw: RawConfig, file: string, positionOf: PositionOf, reading: Reading): Config {
  const listen = readListen(raw, reading);
  const who = readAgents(raw, reading);
  if (!listen.loopback && who.credentials.length === 0) {
    reading.log.error(
      'exposed_without_credentials',
      ['listen'],
      `\`${listen.host}\` can be reached from elsewhere and no agent has a credential; listen on 127.0.0.1 or give one (\`toolgate credential new\`)`,
    );
  }
  const store = readStore(raw, reading);
  const audience = raw.audience ?? 'toolgate';
  const confirmations = raw.confirmations ?? {};
  const url = typeof raw.console === 'object' ? raw.console.url : undefined;
  return {
    file,
    positionOf,
    listen,
    ...who,
    tenant: raw.tenant ?? 'default',
    audience,
    language: raw.language ?? 'en',
    timezone: readTimezone(raw, reading),
    taintPolicy: raw.taint_policy ?? 'confirm',
    keys: readKeys(raw, audience, reading),
    store,
    audit: {
      file: raw.audit?.file === 'stdout' ? 'stdout' : reading.output(raw.audit?.file ?? './logs/audit.jsonl'),
      values: raw.audit?.values ?? false,
      maxSizeBytes: reading.sizeBytes(raw.audit?.max_size, '256MiB'),
    },
    confirmations: {
      ...(confirmations.mode === undefined ? {} : { mode: confirmations.mode }),
      ttlMs: reading.durationMs(confirmations.ttl, '24h'),
      ...(confirmations.point === undefined ? {} : { point: confirmations.point }),
    },
    sessions: { carryMs: reading.durationMs(raw.sessions?.carry, '24h'), max: raw.sessions?.max ?? 1000 },
    runs: {
      onRefuse: raw.runs?.on_refuse ?? 'undo',
      onFailure: raw.runs?.on_failure ?? 'undo',
      idleMs: reading.durationMs(raw.runs?.idle, '15m'),
    },
    receipts: {
      maxAgeMs: reading.durationMs(raw.receipts?.max_age, '5m'),
      enforce: new Set(raw.receipts?.enforce ?? ['schema', 'destination', 'limits']),
    },
    routes: readRoutes(raw, reading),
    rulebook: readRulebook(raw, reading),
    facts: raw.facts ?? {},
    ...readLicence(raw, reading),
    trustedProxies: readTrustedProxies(raw, reading),
    workers: readWorkers(raw, store, reading),
    console: { enabled: raw.console !== false, ...(url === undefined ? {} : { url }) },
    retry: { attempts: raw.retry?.attempts ?? 2 },
    idempotency: {
      keepMs: reading.durationMs(raw.idempotency?.keep, '24h'),
      required: raw.idempotency?.required ?? false,
    },
    files: reading.files,
  };
}
