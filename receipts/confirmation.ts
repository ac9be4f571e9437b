import { decodeBase64url, encodeBase64url, isBase64url } from './base64url.ts';
import { canonicalize } from './canonical.ts';
import type { SigningKey } from './crypto.ts';
import { signedBytes } from './digest.ts';
import { type IssuerKey, wasValid } from './history-verify.ts';
import { parseJson } from './json.ts';
import { JsonFault } from './json-fault.ts';
import type { JsonObject, JsonValue } from './json-value.ts';

/** What a confirmation token says: a person saw this call, at this point of the history, and said yes to it. */
export type Confirmation = {
  /** 16 random bytes in base64url. */
  readonly id: string;
  readonly session: string;
  /** The confirm entry's step and link. */
  readonly step: number;
  readonly link: string;
  readonly tool: string;
  readonly agent: string;
  /** The confirm entry's arguments digest. */
  readonly arguments: string;
  /** The digest of what the person was shown. */
  readonly shown: string;
  /** Milliseconds since 1970; from then on it is worth nothing. */
  readonly expires: number;
  /** Who said yes, where it was not the host's own person. */
  readonly approver?: string;
};

/** What a token turned out to be. */
export type OpenedConfirmation =
  | { readonly state: 'invalid' }
  | { readonly state: 'expired' | 'open'; readonly confirmation: Confirmation };

/** Why an opened token does not let a call pass, as the check answers it in `detail.confirmation`. */
export type ConfirmationFault = 'invalid' | 'expired' | 'other_call' | 'spent' | 'other_point';

const MEMBERS: ReadonlySet<string> = new Set([
  ...['id', 'session', 'step', 'link', 'tool', 'agent', 'arguments', 'shown', 'expires', 'approver'],
]);

/** A confirmation in, its signed token out: base64url(payload) `.` base64url(signature). */
export function signConfirmation(key: SigningKey, confirmation: Confirmation): string {
  const payload = new TextEncoder().encode(canonicalize(confirmation));
  return `${encodeBase64url(payload)}.${encodeBase64url(key.sign(signedBytes('qls-confirmation/1', payload)))}`;
}

/**
 * A token's text in, what it is out. Only the one spelling that {@link signConfirmation} gives is a token: canonical
 * base64url over canonical JSON. `keys` are the gateway's own (an issuer's are never passed), each good only while it
 * is valid now; `now` in milliseconds. Never throws for what the text holds.
 */
export function openConfirmation(token: string, keys: readonly IssuerKey[], now: number): OpenedConfirmation {
  const dot = token.indexOf('.');
  const payload = dot === -1 ? undefined : decodeBase64url(token.slice(0, dot));
  const signature = decodeBase64url(token.slice(dot + 1), 64);
  if (payload === undefined || signature === undefined) return { state: 'invalid' };
  const message = signedBytes('qls-confirmation/1', payload);
  if (!keys.some((key) => wasValid(key, now) && key.key.verify(message, signature))) return { state: 'invalid' };
  const confirmation = parsePayload(payload);
  if (confirmation === undefined) return { state: 'invalid' };
  return { state: now >= confirmation.expires ? 'expired' : 'open', confirmation };
}

/** What a call must be for a confirmation to cover it, and what the store says of the token. */
export interface ConfirmationFacts {
  readonly session: string;
  readonly tool: string;
  readonly agent: string;
  /** The call's arguments digest under the session's nonce. */
  readonly arguments: string;
  /** The digest of what the person would be shown of this call now. */
  readonly shown: string;
  readonly spent: boolean;
  /** Whether the confirm entry of that step and link still covers this point of the history. */
  readonly covers: boolean;
}

/** An opened token and the facts in, the first reason why it does not cover the call out; `undefined` where it does. */
export function confirmationFault(opened: OpenedConfirmation, facts: ConfirmationFacts): ConfirmationFault | undefined {
  if (opened.state !== 'open') return opened.state;
  const { confirmation } = opened;
  const sameCall =
    confirmation.session === facts.session &&
    confirmation.tool === facts.tool &&
    confirmation.agent === facts.agent &&
    confirmation.arguments === facts.arguments &&
    confirmation.shown === facts.shown;
  if (!sameCall) return 'other_call';
  if (facts.spent) return 'spent';
  return facts.covers ? undefined : 'other_point';
}

function parsePayload(payload: Uint8Array): Confirmation | undefined {
  let value: JsonValue;
  try {
    value = parseJson(payload, { maxDepth: 1 });
  } catch (error) {
    if (error instanceof JsonFault) return undefined;
    throw error;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const confirmation = readMembers(value as JsonObject);
  // One spelling: what a canonical writer gives of what was read must be what was signed.
  if (confirmation === undefined || encodeBase64url(payload) !== encodeCanonical(confirmation)) return undefined;
  return confirmation;
}

function encodeCanonical(confirmation: Confirmation): string {
  return encodeBase64url(new TextEncoder().encode(canonicalize(confirmation)));
}

function readMembers(o: JsonObject): Confirmation | undefined {
  if (!Object.keys(o).every((key) => MEMBERS.has(key))) return undefined;
  const { id, session, step, link, tool, agent, shown, expires, approver } = o;
  const args = o['arguments'];
  if (!isBytes(id, 16) || !isBytes(link, 32) || !isBytes(args, 32) || !isBytes(shown, 32)) return undefined;
  if (typeof session !== 'string' || typeof tool !== 'string' || typeof agent !== 'string') return undefined;
  if (!isCount(step) || !isCount(expires)) return undefined;
  const confirmation = { id, session, step, link, tool, agent, arguments: args, shown, expires };
  if (approver === undefined) return confirmation;
  return typeof approver === 'string' ? { ...confirmation, approver } : undefined;
}

function isBytes(value: JsonValue | undefined, length: number): value is string {
  return typeof value === 'string' && isBase64url(value, length);
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
