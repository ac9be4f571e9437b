import { canonicalize } from '../../receipts/canonical.ts';
import { parseJson } from '../../receipts/json.ts';
import { JsonFault } from '../../receipts/json-fault.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { BadAnswer, GatewayProblem, GatewayUnreachable } from './errors.ts';

/** The part of `fetch` that is used. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface TransportOptions {
  /** Where the gateway listens, with or without a path before `/v1`: `http://127.0.0.1:8080`. */
  readonly url: string;
  /** The API key; absent where the gateway has no credentials. */
  readonly key?: string | undefined;
  readonly fetch?: Fetch | undefined;
}

/** Asks a gateway's API: JSON both ways, every digit of large integers kept. */
export class Transport {
  readonly #base: string;
  readonly #key: string | undefined;
  readonly #fetch: Fetch;

  constructor(options: TransportOptions) {
    this.#base = options.url.endsWith('/') ? options.url.slice(0, -1) : options.url;
    this.#key = options.key;
    // Called without `this`: browsers refuse a `fetch` that is a method of something else.
    const given = options.fetch;
    this.#fetch = given === undefined ? (url, init) => fetch(url, init) : (url, init) => given(url, init);
  }

  /** The answer's JSON. Throws `GatewayProblem`, `GatewayUnreachable` or `BadAnswer`; retries nothing. */
  async ask(
    method: 'GET' | 'POST',
    path: string,
    body?: JsonObject,
    headers: Readonly<Record<string, string>> = {},
    signal?: AbortSignal,
  ): Promise<JsonValue> {
    const { status, text, type, retryAfter } = await this.#send(method, path, body, headers, signal);
    const value = readText(text, type);
    if (status === 200 && value !== undefined) return value;
    if (status === 200) throw new BadAnswer(`the answer to ${method} ${path} is no JSON`);
    throw problemOf(`${method} ${path}`, status, value, retryAfter);
  }

  async #send(
    method: string,
    path: string,
    body: JsonObject | undefined,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<Received> {
    const init: RequestInit = {
      method,
      // A redirect would take the API key, and the call, to somebody else.
      redirect: 'error',
      headers: {
        ...headers,
        accept: 'application/json',
        ...(this.#key === undefined ? {} : { authorization: `Bearer ${this.#key}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: canonicalize(body) }),
      ...(signal === undefined ? {} : { signal }),
    };
    try {
      const response = await this.#fetch(`${this.#base}${path}`, init);
      const retryAfter = response.headers.get('retry-after');
      const type = response.headers.get('content-type') ?? '';
      return { status: response.status, text: await response.text(), type, retryAfter };
    } catch (error) {
      throw new GatewayUnreachable(`no answer came to ${method} ${path}; whether it arrived is not known`, error);
    }
  }
}

interface Received {
  readonly status: number;
  readonly text: string;
  readonly type: string;
  readonly retryAfter: string | null;
}

function readText(text: string, type: string): JsonValue | undefined {
  if (!type.includes('json')) return undefined;
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof JsonFault) return undefined;
    throw error;
  }
}

const TYPE_PREFIX = 'urn:toolgate:';

function problemOf(
  what: string,
  status: number,
  value: JsonValue | undefined,
  retryAfter: string | null,
): GatewayProblem | BadAnswer {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return new BadAnswer(`${what} was answered ${status}, by no Toolgate`);
  }
  const problem = value as JsonObject;
  const { type, detail, title } = problem;
  if (typeof type !== 'string' || !type.startsWith(TYPE_PREFIX)) {
    return new BadAnswer(`${what} was answered ${status}, by no Toolgate`, problem);
  }
  const said = typeof detail === 'string' ? detail : typeof title === 'string' ? title : type;
  const seconds = retryAfter === null ? Number.NaN : Number(retryAfter);
  const code = type.slice(TYPE_PREFIX.length);
  return new GatewayProblem(code, said, status, problem, Number.isFinite(seconds) ? seconds : undefined);
}
