import type { RulebookRecord } from '../../policy/rulebook/record.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import type { Crypto, SigningKey } from '../../receipts/crypto.ts';
import { policyDigest } from '../../receipts/digest.ts';
import { parseJson } from '../../receipts/json.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import type { BuiltCatalogue } from '../catalogue/build.ts';
import { policyMaterial } from '../catalogue/policy-material.ts';
import type { Config } from '../config/config.ts';
import type { Upstream } from '../exchange.ts';
import type { Loaded } from '../loaded.ts';
import { makeRulePart } from './conditions.ts';
import { readFailedWhen } from './failed-when.ts';
import { makeIssuers } from './issuers.ts';
import type { Licence } from './licence.ts';
import { makeRulebookPart } from './rulebook.ts';
import { unwatchedReads } from './unwatched.ts';

/** What the making of a `Loaded` needs beside the config. */
export interface LoadServices {
  readonly crypto: Crypto;
  readonly signing: SigningKey;
  /** Opens the upstream of each route, by server name. */
  readonly upstreams: ReadonlyMap<string, Upstream>;
  /** The compiled rulebook; absent where there is none. */
  readonly rulebook: RulebookRecord | undefined;
  /** The verified licence; absent where none is configured. */
  readonly licence: Licence | undefined;
  /** Where an approver decides a confirmation; its id follows behind a slash. */
  readonly approveAt: string;
}

/** Compiles a config and its catalogue into what calls are enforced under. */
export function makeLoaded(config: Config, built: BuiltCatalogue, services: LoadServices): Loaded {
  const { crypto, signing } = services;
  const issuers = makeIssuers(crypto, config, signing, built.issuers);
  const rulebook = makeRulebookPart(services.rulebook, built);
  const rules = makeRulePart(config, built);
  const limited = new Set(
    [...built.settings.values()]
      .filter(({ limits, spend, outcome, filter }) => limits.length + spend.length > 0 || outcome || filter)
      .map(({ id }) => id),
  );
  return {
    tenant: config.tenant,
    audience: config.audience,
    issuer: config.keys.id,
    catalogue: built.catalogue,
    settings: { language: config.language, taintPolicy: config.taintPolicy },
    licence: services.licence,
    policy: policyDigest(crypto, canonicalize(policyMaterial(config, built, plain(services.rulebook)))),
    signing,
    ownKeys: issuers.ownKeys,
    checkIssuers: issuers.check,
    receiptIssuers: issuers.receipt,
    confirmations: {
      mode: config.confirmations.mode ?? 'returned',
      ttlMs: config.confirmations.ttlMs,
      approveAt: services.approveAt,
      ...(config.confirmations.point === undefined ? {} : { point: config.confirmations.point }),
    },
    sessions: config.sessions,
    runs: config.runs,
    receipts: config.receipts,
    allowReadsWithoutStore: config.store.unavailable === 'allow_reads',
    maxAnswerBytes: config.store.maxAnswerBytes,
    idempotencyKeepMs: config.idempotency.keepMs,
    unwatched: unwatchedReads(built.catalogue, limited),
    upstreams: services.upstreams,
    mcp: {
      listed: built.listed,
      unlisted: built.unlisted,
      routes: new Map(built.routes.map((route) => [route.name, route])),
    },
    verifyOf: verifying(built),
    timeoutMs: timeouts(built),
    retryAttempts: (tool) => built.settings.get(tool.id)?.retryAttempts ?? config.retry.attempts,
    failedWhen: readFailedWhen(built),
    idempotencyRequired: new Set([...built.settings.values()].filter((s) => s.idempotencyRequired).map((s) => s.id)),
    conditions: rules.rules.gate,
    rulebook: rulebook.gate,
    answersRead: (toolId) => union(rulebook.reads(toolId), rules.reads(toolId)),
    rules,
  };
}

function verifying(built: BuiltCatalogue): Loaded['verifyOf'] {
  const byServer = new Map(built.routes.map((route) => [route.name, route.verify]));
  return (server) => byServer.get(server) ?? 'check';
}

function timeouts(built: BuiltCatalogue): Loaded['timeoutMs'] {
  const byTool = new Map<string, number>();
  const byServer = new Map(built.routes.map((route) => [route.name, route.timeoutMs]));
  for (const tool of built.catalogue.tools.values()) {
    const own = built.settings.get(tool.id)?.timeoutMs ?? byServer.get(tool.server);
    if (own !== undefined) byTool.set(tool.id, own);
  }
  return (tool) => byTool.get(tool.id) ?? DEFAULT_TIMEOUT_MS;
}

const DEFAULT_TIMEOUT_MS = 30_000;

function union(one: readonly string[], other: readonly string[]): readonly string[] {
  if (other.length === 0) return one;
  return one.length === 0 ? other : [...new Set([...one, ...other])];
}

/** A record is plain JSON, whatever its type says. */
function plain(record: RulebookRecord | undefined): JsonValue {
  return record === undefined ? null : parseJson(JSON.stringify(record));
}
