import { timingSafeEqual } from 'node:crypto';
import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import type { Gateway } from '../gateway.ts';

/** What an `Mcp-Session-Id` says, signed by the gateway: any process of the same store can go on with the session. */
export interface SessionClaims {
  /** 16 random bytes, base64url: names the history, and the session at servers. */
  readonly id: string;
  /** Name of the credential that opened it. */
  readonly caller: string;
  /** The server of the endpoint; absent for the endpoint over all. */
  readonly server?: string;
  readonly protocolVersion: string;
  readonly capabilities: JsonObject;
  readonly clientInfo: JsonObject;
}

const LONGEST_ID = 4_096;

/** The text of a session id. */
export function renderSessionId(gateway: Gateway, claims: SessionClaims): string {
  const body = Buffer.from(JSON.stringify(claims)).toString('base64url');
  return `${body}.${signatureOf(gateway, body)}`;
}

/** Reads a session id; `undefined` for one that this gateway did not make. */
export function verifySessionId(gateway: Gateway, text: string): SessionClaims | undefined {
  if (text.length > LONGEST_ID) return undefined;
  const dot = text.indexOf('.');
  const body = text.slice(0, Math.max(dot, 0));
  const given = Buffer.from(text.slice(dot + 1));
  const right = Buffer.from(signatureOf(gateway, body));
  if (dot < 0 || given.length !== right.length || !timingSafeEqual(given, right)) return undefined;
  const value = JSON.parse(Buffer.from(body, 'base64url').toString()) as JsonValue;
  return isClaims(value) ? value : undefined;
}

/** Claims for a session of a new id; what a client says of itself is kept only where it is short. */
export function makeClaims(id: string, claims: Omit<SessionClaims, 'id'>): SessionClaims {
  const { capabilities, clientInfo } = claims;
  const { name } = clientInfo;
  return {
    ...claims,
    id,
    capabilities: Object.fromEntries(
      ['elicitation', 'sampling', 'roots'].flatMap((key) =>
        isObject(capabilities[key]) ? [[key, capabilities[key]]] : [],
      ),
    ),
    clientInfo: { name: typeof name === 'string' ? name.slice(0, 100) : '', version: '0' },
  };
}

function signatureOf(gateway: Gateway, body: string): string {
  return gateway.keyed(`mcp session id\n${body}`);
}

function isClaims(value: JsonValue): value is JsonObject & SessionClaims {
  if (!isObject(value)) return false;
  const { id, caller, protocolVersion, capabilities, clientInfo } = value;
  const texts = [id, caller, protocolVersion].every((text) => typeof text === 'string');
  return texts && isObject(capabilities) && isObject(clientInfo);
}
