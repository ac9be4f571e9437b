import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';

/** What every error of the client library is. `code` is stable; the message says what is wrong and what to do. */
export class ClientError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = 'ClientError';
    this.code = code;
  }
}

/**
 * The gateway answered with a problem (RFC 9457) in place of an answer. `code` is the problem's own: what stands behind
 * `urn:toolgate:` in its type, such as `session_busy` or `key_in_flight`.
 */
export class GatewayProblem extends ClientError {
  readonly status: number;
  /** The whole problem document; empty where the answer was none. */
  readonly problem: JsonObject;
  /** When to try again, in seconds, where the gateway said so. */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: string, message: string, status: number, problem: JsonObject, retryAfterSeconds?: number) {
    super(code, message);
    this.name = 'GatewayProblem';
    this.status = status;
    this.problem = problem;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** No answer came, code `gateway_unreachable`: whether the request arrived, nobody here can tell. */
export class GatewayUnreachable extends ClientError {
  constructor(message: string, cause: unknown) {
    super('gateway_unreachable', message, { cause });
    this.name = 'GatewayUnreachable';
  }
}

/** An answer that is not what the gateway answers, code `bad_answer`: something else listens at the URL. */
export class BadAnswer extends ClientError {
  readonly answer: JsonValue | undefined;

  constructor(message: string, answer?: JsonValue) {
    super('bad_answer', message);
    this.name = 'BadAnswer';
    this.answer = answer;
  }
}

/**
 * An answer that the gateway's key does not vouch for, code `untrusted_answer`: it was changed on its way, is of another call,
 * or the public key is not this gateway's. What it says must not be acted on.
 */
export class UntrustedAnswer extends ClientError {
  constructor(message: string, cause?: unknown) {
    super('untrusted_answer', message, { cause });
    this.name = 'UntrustedAnswer';
  }
}

/** A check was used where a true or false, a number or a text is wanted, code `no_truth_value`. */
export class NoTruthValue extends TypeError {
  readonly code = 'no_truth_value';

  constructor() {
    super('a check is neither true nor false: compare its `decision` with `allow`, `confirm` or `refuse`');
    this.name = 'NoTruthValue';
  }
}

/** There is nothing to make a receipt, or a report, of: code `no_receipt` or `no_such_check`. */
export class NoSuchStep extends ClientError {
  constructor(code: 'no_receipt' | 'no_such_check', message: string) {
    super(code, message);
    this.name = 'NoSuchStep';
  }
}
