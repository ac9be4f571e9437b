export interface EdgeLimits {
  /** Bytes of the request line and the header section. */
  readonly headerBytes: number;
  /** Header fields. */
  readonly headers: number;
  /** Characters of the request target. */
  readonly targetLength: number;
  /** Open connections; more are closed at once. */
  readonly connections: number;
  /** Requests of one connection that may wait for their answers (pipelining). */
  readonly pipelined: number;
  /** Bytes of an unread body that are thrown away to keep its connection. */
  readonly drainBytes: number;
}

export interface EdgeTimeouts {
  /** From the first byte of a request to the end of its header section. */
  readonly headersMs: number;
  /** To the end of its body. */
  readonly requestMs: number;
  /** Between two requests of a connection. */
  readonly keepAliveMs: number;
  readonly tlsHandshakeMs: number;
  /** How long the rest of a body that nobody reads is waited for before its connection ends. */
  readonly lingerMs: number;
  /** How long a client may take over a whole answer. Streamed answers have a limit of their own. */
  readonly takeMs: number;
}

export interface EdgeTls {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** Clients must show a certificate of this authority. */
  readonly clientCa?: string | Buffer;
}

export const EDGE_LIMITS: EdgeLimits = {
  headerBytes: 64 * 1024,
  headers: 128,
  targetLength: 8 * 1024,
  connections: 10_000,
  pipelined: 32,
  drainBytes: 1024 * 1024,
};

export const EDGE_TIMEOUTS: EdgeTimeouts = {
  headersMs: 10_000,
  requestMs: 30_000,
  keepAliveMs: 65_000,
  tlsHandshakeMs: 10_000,
  lingerMs: 1_000,
  takeMs: 120_000,
};
