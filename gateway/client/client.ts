import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { AnswerVerifier } from './answer-verifier.ts';
import { CarriedHistory } from './carried-history.ts';
import { NoSuchStep } from './errors.ts';
import type { History } from './history.ts';
import { newSessionId, Session } from './session.ts';
import { type Fetch, Transport } from './transport.ts';

export interface ClientOptions {
  /** Where the gateway listens: `http://127.0.0.1:8080`. */
  readonly url: string;
  /** The API key; absent where the gateway has no credentials. */
  readonly key?: string;
  /**
   * The gateway's public key, base64url or PEM text, several over a rotation: every answer of a carried session, and every
   * history, is then verified, and one that it does not vouch for throws `UntrustedAnswer`.
   */
  readonly publicKey?: string | readonly string[];
  /**
   * The config has `defaults` that fill in arguments: what is signed may then be of more arguments than were sent, and is
   * not compared with them.
   */
  readonly fillsDefaults?: boolean;
  /** In place of the runtime's own. */
  readonly fetch?: Fetch;
}

export interface SessionOptions {
  /** Name of the session; a random one where absent. */
  readonly id?: string;
  /** The history is carried by this side and not held by the gateway. */
  readonly carried?: boolean;
  /** A carried history to go on from, whole. */
  readonly history?: History;
  /** The run of every call that names no other. */
  readonly run?: string;
}

/** A gateway, as its callers and approvers use it. Keeps no connection and no state but what its sessions keep. */
export class Client {
  readonly #transport: Transport;
  readonly #verifier: AnswerVerifier | undefined;
  readonly #fillsDefaults: boolean;

  /** Throws `KeyFault` for a public key that is none. */
  constructor(options: ClientOptions) {
    this.#transport = new Transport(options);
    this.#fillsDefaults = options.fillsDefaults ?? false;
    this.#verifier = options.publicKey === undefined ? undefined : new AnswerVerifier(options.publicKey);
  }

  /** A session of an agent; the agent may be left out where the credential has but one. Asks nothing yet. */
  session(agent?: string, options: SessionOptions = {}): Session {
    const { history, run } = options;
    if (history?.isCut)
      throw new NoSuchStep('no_receipt', 'a session goes on from a whole history, not from a cut one');
    const whole = history?.toJSON();
    const isCarried = options.carried === true || history !== undefined;
    const carried = isCarried
      ? new CarriedHistory(whole?.prev === undefined ? whole : undefined, this.#verifier)
      : undefined;
    const id = history?.session ?? options.id ?? newSessionId();
    return new Session({
      transport: this.#transport,
      verifier: this.#verifier,
      fillsDefaults: this.#fillsDefaults,
      agent,
      id,
      run,
      carried,
    });
  }

  /** The tools that this caller reaches, as the gateway lists them. */
  tools(): Promise<JsonValue> {
    return this.#transport.ask('GET', '/v1/tools');
  }

  /** What the history's last entry is worth for a call: the qls-tool-receipt/1 answer. `spend` uses it up. */
  checkReceipt(tool: string, args: JsonObject, history: History, spend = false): Promise<JsonValue> {
    const body = { tool, arguments: args, history: history.toJSON(), ...(spend ? { spend } : {}) };
    return this.#transport.ask('POST', '/v1/receipts', body);
  }

  /** Approves a held confirmation. For an approver's key, which is never the agent's. */
  async approve(id: string, note?: string): Promise<void> {
    await this.#decide(id, 'approve', note);
  }

  /** Denies a held confirmation. For an approver's key. */
  async deny(id: string, note?: string): Promise<void> {
    await this.#decide(id, 'deny', note);
  }

  async #decide(id: string, act: string, note: string | undefined): Promise<void> {
    const path = `/v1/confirmations/${encodeURIComponent(id)}/${act}`;
    await this.#transport.ask('POST', path, note === undefined ? {} : { note });
  }
}
