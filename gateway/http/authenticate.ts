import { hash } from 'node:crypto';
import type { Caller } from '../../policy/call.ts';
import type { Problem } from '../exchange.ts';
import { fault } from './problems.ts';

/** A key that a caller may show, known by its digest alone. */
interface CredentialEntry {
  /** `sha256:<hex>` of the key. */
  readonly digest: string;
  /** Whose sessions, runs and idempotency keys these are. */
  readonly name: string;
  readonly host: boolean;
  readonly agents: ReadonlySet<string>;
}

interface ApproverEntry {
  readonly name: string;
  /** `sha256:<hex>` of each of the keys. */
  readonly digests: readonly string[];
}

export interface AuthenticatorOptions {
  /** None at all: the caller is a host that may name every agent (a loopback listener only, which the config sees to). */
  readonly credentials: readonly CredentialEntry[];
  readonly approvers: readonly ApproverEntry[];
  /** Every agent of the config. */
  readonly agents: ReadonlySet<string>;
}

/** Who a request comes from. A credential is either a caller's or an approver's, never both. */
export type Identity =
  | { readonly kind: 'caller'; readonly caller: Caller }
  | { readonly kind: 'approver'; readonly name: string };

/**
 * An `Authorization` header value in (absent where the request has none), who that is out. The `connection` it came over
 * spares the digest where its last request had the same valid value: who sends it there again knows it already.
 */
export type Authenticator = (
  authorization: string | undefined,
  connection?: object,
) => Identity | { readonly problem: Problem };

/** Name of the caller where no credentials are configured. */
const OPEN_CALLER = 'local';

/** A key longer than this is none of ours; it is not digested. */
const MAX_KEY_LENGTH = 1024;

/**
 * Makes the look-up of credentials. Keys are looked up by their SHA-256 digest, so the time of the look-up tells nothing
 * about a key. Throws a TypeError for a digest that is malformed or stands for a caller and an approver.
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const identities = new Map<string, Identity>();
  const add = (digest: string, identity: Identity): void => {
    const hex = digest.startsWith('sha256:') ? digest.slice(7).toLowerCase() : '';
    if (!isHexDigest(hex)) throw new TypeError('a credential must be `sha256:` and 64 hexadecimal digits');
    if (identities.has(hex)) throw new TypeError(`the credential of \`${nameOf(identity)}\` is listed twice`);
    identities.set(hex, identity);
  };
  for (const { digest, name, host, agents } of options.credentials) {
    add(digest, { kind: 'caller', caller: { name, host, agents } });
  }
  for (const { name, digests } of options.approvers) {
    for (const digest of digests) add(digest, { kind: 'approver', name });
  }
  const open: Identity | undefined =
    options.credentials.length > 0
      ? undefined
      : { kind: 'caller', caller: { name: OPEN_CALLER, host: true, agents: options.agents } };
  const last = new WeakMap<object, { readonly authorization: string; readonly identity: Identity }>();
  return (authorization, connection) => {
    // With nothing configured there is nothing to compare a key with, and a caller without one is let in as well.
    if (open !== undefined && (authorization === undefined || identities.size === 0)) return open;
    if (authorization === undefined) {
      return { problem: fault('no_credential', 'the request has no credential; send `Authorization: Bearer KEY`') };
    }
    const known = connection === undefined ? undefined : last.get(connection);
    if (known !== undefined && known.authorization === authorization) return known.identity;
    const key = bearerKey(authorization);
    const identity = key === undefined ? undefined : identities.get(hash('sha256', key, 'hex'));
    if (identity === undefined) {
      const detail = 'the credential is not known here; send `Authorization: Bearer KEY` with a valid key';
      return { problem: fault('no_credential', detail) };
    }
    if (connection !== undefined) last.set(connection, { authorization, identity });
    return identity;
  };
}

/** The caller of a request that takes callers; an approver's credential is none. */
export function callerOf(identity: Identity): Caller | { readonly problem: Problem } {
  if (identity.kind === 'caller') return identity.caller;
  return { problem: fault('wrong_role', "an approver's credential makes no calls; use an agent's or a host's") };
}

/** The approver's name, where the request takes approvers alone. */
export function approverOf(identity: Identity): string | { readonly problem: Problem } {
  if (identity.kind === 'approver') return identity.name;
  return { problem: fault('wrong_role', "only an approver's credential can do this") };
}

/** The token of `Bearer TOKEN` (RFC 6750 section 2.1); the scheme's case does not matter (RFC 9110 section 11.1). */
function bearerKey(authorization: string): string | undefined {
  if (authorization.length > MAX_KEY_LENGTH || authorization.slice(0, 7).toLowerCase() !== 'bearer ') return undefined;
  const key = authorization.slice(7).trim();
  return key === '' || key.includes(' ') || key.includes(',') ? undefined : key;
}

function isHexDigest(hex: string): boolean {
  return hex.length === 64 && Buffer.from(hex, 'hex').length === 32;
}

function nameOf(identity: Identity): string {
  return identity.kind === 'caller' ? identity.caller.name : identity.name;
}
