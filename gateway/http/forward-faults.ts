import type { UpstreamAnswer } from '../exchange.ts';

/** How a call ended that has no answer. */
export type NoAnswer = Extract<UpstreamAnswer, { readonly kind: 'not_sent' | 'unclear' }>;

/** A call is given up by the gateway itself. */
export class GaveUp extends Error {
  readonly code: 'client_gone' | 'total_timeout' | 'upstream_busy' | 'sent_twice';

  constructor(code: GaveUp['code'], message: string) {
    super(message);
    this.name = 'GaveUp';
    this.code = code;
  }
}

/** The answer broke off after its head was handed on. */
export class BrokenAnswer extends Error {
  readonly code: string;

  constructor(code: string, message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'BrokenAnswer';
    this.code = code;
  }
}

const NAME_FAULTS: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EAI_NODATA', 'EAI_NONAME', 'EAI_FAIL']);
const LOST: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED', 'UND_ERR_SOCKET', 'UND_ERR_CLOSED']);

/**
 * What an error means that came before the request was given to a connection: nothing of it can have left.
 * @param error Of undici, node:net or node:tls.
 */
export function notSent(error: unknown): NoAnswer {
  const code = codeOf(error);
  if (error instanceof GaveUp) return { kind: 'not_sent', code: error.code, why: error.message };
  if (NAME_FAULTS.has(code)) {
    return { kind: 'not_sent', code: 'name_not_found', why: `the name of the upstream was not found (${code})` };
  }
  if (code === 'ECONNREFUSED') {
    return { kind: 'not_sent', code: 'connection_refused', why: 'the upstream refused the connection' };
  }
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT') {
    return { kind: 'not_sent', code: 'connect_timeout', why: 'the upstream took no connection in time' };
  }
  if (isTlsFault(code)) {
    return {
      kind: 'not_sent',
      code: 'tls_failed',
      why: `no secure connection to the upstream could be made (${code})`,
    };
  }
  return { kind: 'not_sent', code: 'connect_failed', why: `no connection to the upstream could be made (${code})` };
}

/** What an error means that came once bytes of the request may have left: the call may have been done. */
export function unclear(error: unknown): NoAnswer {
  const code = codeOf(error);
  if (error instanceof GaveUp) return { kind: 'unclear', code: error.code, why: error.message };
  if (code === 'UND_ERR_HEADERS_TIMEOUT') {
    return { kind: 'unclear', code: 'first_byte_timeout', why: 'the upstream did not begin to answer in time' };
  }
  if (code === 'UND_ERR_BODY_TIMEOUT') {
    return { kind: 'unclear', code: 'idle_timeout', why: 'the upstream stopped in the middle of its answer' };
  }
  if (LOST.has(code)) {
    return {
      kind: 'unclear',
      code: 'connection_lost',
      why: 'the connection to the upstream was lost before its answer',
    };
  }
  return { kind: 'unclear', code: 'broken_answer', why: `the answer of the upstream could not be read (${code})` };
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error) || !('code' in error)) return 'unknown';
  return typeof error.code === 'string' ? error.code : 'unknown';
}

/** Codes of node:tls and of OpenSSL: certificates that do not verify, and handshakes that fail. */
function isTlsFault(code: string): boolean {
  return (
    code.startsWith('ERR_TLS_') ||
    code.startsWith('ERR_SSL_') ||
    code.startsWith('CERT_') ||
    code.startsWith('UNABLE_TO_') ||
    code === 'DEPTH_ZERO_SELF_SIGNED_CERT' ||
    code === 'SELF_SIGNED_CERT_IN_CHAIN' ||
    code === 'HOSTNAME_MISMATCH' ||
    code === 'INVALID_CA' ||
    code === 'EPROTO'
  );
}
