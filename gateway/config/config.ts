import type { Agent } from '../../policy/tool.ts';
import type { PositionOf } from './problem.ts';
import type { RawFact, RawHttpCall, RawTool, ReceiptCheck } from './raw.ts';
import type { Secret } from './secret.ts';

/** A configuration as the gateway uses it: defaults applied, durations in milliseconds, sizes in bytes, paths absolute. */
export interface Config {
  /** The configuration file, absolute. */
  readonly file: string;
  /** Every file that was read for it, absolute: what `--watch` watches. */
  readonly files: readonly string[];
  /** Where a member stands in the file. */
  readonly positionOf: PositionOf;
  readonly listen: Listen;
  readonly tenant: string;
  readonly audience: string;
  readonly language: 'en' | 'pt-BR';
  /** An IANA time zone. */
  readonly timezone: string;
  readonly taintPolicy: 'confirm' | 'refuse';
  readonly keys: Keys;
  readonly store: StoreConfig;
  readonly audit: { readonly file: string; readonly values: boolean; readonly maxSizeBytes: number };
  readonly confirmations: Confirmations;
  readonly sessions: { readonly carryMs: number; readonly max: number };
  readonly runs: { readonly onRefuse: 'undo' | 'leave'; readonly onFailure: 'undo' | 'leave'; readonly idleMs: number };
  readonly receipts: { readonly maxAgeMs: number; readonly enforce: ReadonlySet<ReceiptCheck> };
  readonly agents: ReadonlyMap<string, Agent>;
  /** One for each key digest. Empty: only loopback may listen, and the caller is a host that may name every agent. */
  readonly credentials: readonly Credential[];
  readonly approvers: readonly { readonly name: string; readonly digests: readonly string[] }[];
  readonly routes: readonly RouteConfig[];
  /** Rulebook files and folders, absolute. */
  readonly rulebook: readonly string[];
  /** As written; `from` is resolved in the catalogue. */
  readonly facts: Readonly<Record<string, RawFact>>;
  readonly licence?: { readonly file: string; readonly publicKey?: Uint8Array; readonly lapsed: 'writes' | 'refuse' };
  readonly trustedProxies: readonly string[];
  readonly workers: number;
  readonly console: { readonly enabled: boolean; readonly url?: string };
  readonly retry: { readonly attempts: number };
  readonly idempotency: { readonly keepMs: number; readonly required: boolean };
}

export interface Listen {
  readonly host: string;
  readonly port: number;
  /** The address is this machine's own, by its text: `localhost`, 127.0.0.0/8 or ::1. */
  readonly loopback: boolean;
  readonly tls?: { readonly certFile: string; readonly keyFile: string; readonly clientCaFile?: string };
}

export interface Keys {
  /** PKCS#8 PEM file; the key is made where it is missing. */
  readonly signingFile: string;
  /** The gateway's issuer id. */
  readonly id: string;
  readonly previous: readonly { readonly publicKey: Uint8Array; readonly notAfterMs: number }[];
  readonly issuers: readonly Issuer[];
}

export interface Issuer {
  /** Its place in `keys.issuers`. */
  readonly index: number;
  readonly id: string;
  readonly publicKey: Uint8Array;
  readonly agents: readonly string[];
  /** As written; pairs in `BuiltCatalogue.issuers`. */
  readonly tools: readonly string[];
  readonly notBeforeMs?: number;
  readonly notAfterMs?: number;
  readonly revokedAtMs?: number;
}

export interface StoreConfig {
  readonly target:
    | { readonly kind: 'sqlite'; readonly file: string }
    | { readonly kind: 'postgres'; readonly url: Secret };
  readonly unavailable: 'refuse' | 'allow_reads';
  readonly maxAnswerBytes: number;
  /** 32 bytes. */
  readonly encryptionKey?: Uint8Array;
}

interface Confirmations {
  /** Absent: `returned`, on MCP routes `held`. */
  readonly mode?: 'returned' | 'held';
  readonly ttlMs: number;
  /** Absent: `exact` for carried histories, `until_write` for held ones. */
  readonly point?: 'exact' | 'until_write';
}

export interface Credential {
  /** `sha256:<hex>` of the key. */
  readonly digest: string;
  /** Whose sessions, runs and idempotency keys these are. */
  readonly name: string;
  readonly host: boolean;
  /** Agents that it may name; with exactly one, that one is implied. */
  readonly agents: ReadonlySet<string>;
}

/** What stands behind a route. */
export type RouteKind =
  | { readonly kind: 'http'; readonly calls: readonly RawHttpCall[] }
  | {
      readonly kind: 'openapi';
      /** An absolute path, or an address on the upstream. */
      readonly document: { readonly file: string } | { readonly url: string };
      /** `sha256:<hex>` of the document's bytes. An address has one. */
      readonly digest?: string;
      /** Names of tools by `operationId`. */
      readonly rename: Readonly<Record<string, string>>;
    }
  | { readonly kind: 'mcp'; readonly url: string }
  | {
      readonly kind: 'mcp';
      readonly command: readonly string[];
      readonly env: Readonly<Record<string, Secret>>;
      readonly folder: string;
    };

/** PEM texts, read when the configuration is. */
export interface UpstreamTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: Secret;
  readonly serverName?: string;
}

export interface RouteConfig {
  /** Its place in `routes`, for `positionOf`. */
  readonly index: number;
  /** The trusted server name. */
  readonly name: string;
  /** Path prefix without a closing slash. */
  readonly path: string;
  /** Absent on MCP routes, which name their server themselves. */
  readonly upstream?: string;
  readonly verify: 'check' | 'receipt' | 'either';
  readonly agents: ReadonlySet<string>;
  readonly source: RouteKind;
  readonly tools: readonly RawTool[];
  readonly timeoutMs: number;
  readonly limitBytes: number;
  readonly upstreamTls?: UpstreamTls;
  readonly upstreamHeaders: readonly { readonly name: string; readonly value: Secret }[];
  /** Lower case. */
  readonly headers: readonly string[];
  readonly passAuthorization: boolean;
  /** Absent: the MCP methods that are let through by default. */
  readonly methods?: readonly string[];
  readonly annotations: 'trusted' | 'untrusted';
  readonly pins: 'first_use' | 'required' | 'off';
  readonly pass: readonly string[];
  readonly include?: readonly string[];
  readonly exclude: readonly string[];
  /** A write must bring an idempotency key. */
  readonly idempotencyRequired: boolean;
}
