import { encodeBase64url } from '../../receipts/base64url.ts';
import type { Outcome } from '../../receipts/history.ts';
import { parseHistory } from '../../receipts/history-parse.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { AnswerVerifier, SentCall } from './answer-verifier.ts';
import type { CarriedHistory } from './carried-history.ts';
import { type Checked, readCheck } from './check.ts';
import { BadAnswer, NoSuchStep, UntrustedAnswer } from './errors.ts';
import { History } from './history.ts';
import { asObject, optionalNumber, optionalText } from './members.ts';
import type { Transport } from './transport.ts';

/** What a call may carry beside its tool and arguments (docs/api.md). */
export interface CallOptions {
  /** Argument → where it came from: `typed`, `context`, `result:3.total`, `model`, and so on. */
  readonly origins?: Readonly<Record<string, string>>;
  /** The person's own words, as evidence for `typed`. */
  readonly turns?: readonly string[];
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  /** Facts by name; believed of a host. */
  readonly context?: Readonly<Record<string, boolean>>;
  /** The run whose writes are undone together; the session's where absent. */
  readonly run?: string;
  /** The step that this call undoes. */
  readonly undoes?: number;
  /** A confirmation's token, or the id of one that an approver decided. */
  readonly confirmation?: string;
  readonly signal?: AbortSignal;
}

export interface ForwardOptions extends CallOptions {
  /** The client's own key: the same call sent again with it runs once. */
  readonly idempotencyKey?: string;
  /** A receipt for exactly this call, in place of the check: of {@link Session.receipt}, or of an issuer's own history. */
  readonly receipt?: History;
}

/** What became of a call that the gateway was asked to forward. */
export interface CallResult {
  /** `allow` where it was forwarded, or had been; else it was not, and `check` or `receipt` says why. */
  readonly decision: 'allow' | 'confirm' | 'refuse';
  readonly check: Checked | undefined;
  /** The qls-tool-receipt/1 answer, where a receipt stood in place of the check. */
  readonly receipt: JsonObject | undefined;
  readonly outcome: 'ran' | 'failed' | 'outcome_unknown' | undefined;
  /** HTTP status of the backend's answer. */
  readonly status: number | undefined;
  /** The backend's answer: JSON as it is, other text as a text. */
  readonly result: JsonValue | undefined;
  /** Why there is no answer of the backend's. */
  readonly why: string | undefined;
  /** The call was made before: this is its stored answer. */
  readonly replayed: boolean;
}

/** Made by `Client.session`. */
export interface SessionSetup {
  readonly transport: Transport;
  readonly verifier: AnswerVerifier | undefined;
  readonly agent: string | undefined;
  readonly id: string;
  readonly run: string | undefined;
  readonly carried: CarriedHistory | undefined;
  readonly fillsDefaults: boolean;
}

/**
 * One conversation of one agent. *Held*: the gateway keeps the history. *Carried*: this object does, and sends it with each
 * call; calls then go one after another by themselves, since each goes on from the one before.
 */
export class Session {
  readonly agent: string | undefined;
  readonly #setup: SessionSetup;
  #id: string;
  #line: Promise<unknown> = Promise.resolve();
  /** Answers of a held session that its history must hold, by step; kept only where answers are verified. */
  readonly #seen = new Map<number, Checked>();

  constructor(setup: SessionSetup) {
    this.#setup = setup;
    this.agent = setup.agent;
    this.#id = setup.id;
  }

  /** Name of the session. The gateway gives another where the history was at fault: a new one begins then. */
  get id(): string {
    return this.#id;
  }

  /**
   * Asks whether a call may be made, and runs nothing. An allowed one is this caller's to run, and to report with
   * {@link ran}; or is sent on with {@link call} and the {@link receipt}. Throws `GatewayProblem`, `GatewayUnreachable`,
   * `BadAnswer` or `UntrustedAnswer`.
   */
  check(tool: string, args: JsonObject, options: CallOptions = {}): Promise<Checked> {
    return this.#inLine(async () => {
      const body = this.#body(tool, args, options);
      const answer = await this.#setup.transport.ask('POST', '/v1/check', body, {}, options.signal);
      return this.#take(asObject(answer, 'the check'), args, options);
    });
  }

  /**
   * Has a call checked, forwarded once and recorded. With a `receipt` nothing is decided again: the gateway admits exactly
   * the call that the receipt is for, once. Throws as {@link check}.
   */
  call(tool: string, args: JsonObject, options: ForwardOptions = {}): Promise<CallResult> {
    return options.receipt === undefined
      ? this.#inLine(() => this.#forward(tool, args, options))
      : this.#forwardByReceipt(tool, args, options, options.receipt);
  }

  /**
   * Reports what became of an allowed call that this caller ran itself; of one that the gateway forwarded, the gateway
   * knows, and answers 409. A host is believed; an agent's report stands in the history and loosens nothing.
   */
  async ran(check: Checked, outcome: Outcome, result?: JsonValue): Promise<void> {
    const { session, step } = check;
    if (check.decision !== 'allow') {
      throw new NoSuchStep('no_such_check', `step ${step} was not allowed, so there is nothing to report of it`);
    }
    const body = { session, step, outcome, ...(result === undefined ? {} : { result }) };
    await this.#setup.transport.ask('POST', '/v1/outcomes', body);
    if (session === this.#id) this.#setup.carried?.report(step, outcome, result);
  }

  /**
   * A receipt: the history cut to the entry of a check (the newest where none is given), which admits that one call. A held
   * session asks the gateway for its history. Throws `NoSuchStep` where the session has no such entry.
   */
  async receipt(check?: Checked): Promise<History> {
    if (check !== undefined && check.session !== this.#id) {
      throw new NoSuchStep('no_receipt', 'the check is of another session');
    }
    return (await this.history()).cut(check?.step);
  }

  /**
   * The whole history: the carried one, or a held one as the gateway hands it out, verified where the client has the
   * gateway's public key, against every answer that this session was given too.
   */
  async history(): Promise<History> {
    const { carried, transport, verifier } = this.#setup;
    if (carried !== undefined) {
      if (carried.history === undefined) throw new NoSuchStep('no_receipt', 'the session has no entry yet');
      return new History(carried.history);
    }
    const answer = await transport.ask('GET', `/v1/sessions/${encodeURIComponent(this.#id)}`);
    const parsed = parseHistory(answer);
    if (parsed.kind !== 'whole') throw new BadAnswer('the answer is no whole history', answer);
    const { history } = parsed;
    if (verifier !== undefined) {
      verifier.history(history);
      for (const [step, check] of this.#seen) {
        const entry = history.entries[step];
        const same = entry?.decision === check.decision && entry.tool === check.tool && history.session === this.#id;
        if (!same) throw new UntrustedAnswer(`the history has another step ${step} than was answered`);
      }
    }
    return new History(history);
  }

  async #forward(tool: string, args: JsonObject, options: ForwardOptions): Promise<CallResult> {
    const { idempotencyKey: key } = options;
    const body = { ...this.#body(tool, args, options), ...(key === undefined ? {} : { idempotency_key: key }) };
    const answer = asObject(
      await this.#setup.transport.ask('POST', '/v1/call', body, {}, options.signal),
      'the answer',
    );
    const given = answer['check'];
    const check = given === undefined ? undefined : this.#take(asObject(given, 'the check'), args, options);
    const result = readResult(answer, check);
    // The answer's digest is the gateway's to take, over the bytes that it saw: a report without it says no other.
    if (check !== undefined && result.outcome !== undefined) {
      this.#setup.carried?.report(check.step, result.outcome, undefined);
    }
    return result;
  }

  async #forwardByReceipt(
    tool: string,
    args: JsonObject,
    options: ForwardOptions,
    receipt: History,
  ): Promise<CallResult> {
    const { idempotencyKey: key, signal } = options;
    const body = {
      tool,
      arguments: args,
      ...(this.agent === undefined ? {} : { agent: this.agent }),
      ...(key === undefined ? {} : { idempotency_key: key }),
    };
    const headers = { 'toolgate-receipt': receipt.toHeader() };
    const answer = asObject(await this.#setup.transport.ask('POST', '/v1/call', body, headers, signal), 'the answer');
    const result = readResult(answer, undefined);
    const { last, session } = receipt;
    if (last !== undefined && session === this.#id && result.outcome !== undefined) {
      this.#setup.carried?.report(last.step, result.outcome, undefined);
    }
    return result;
  }

  /** Calls of a carried history stand in line; a failed one lets the next go on from where it stood. */
  #inLine<T>(work: () => Promise<T>): Promise<T> {
    if (this.#setup.carried === undefined) return work();
    const turn = this.#line.then(work, work);
    this.#line = turn.catch(() => undefined);
    return turn;
  }

  #body(tool: string, args: JsonObject, options: CallOptions): JsonObject {
    const { origins, turns, labels, context, undoes, confirmation } = options;
    const run = options.run ?? this.#setup.run;
    const { carried } = this.#setup;
    return {
      tool,
      arguments: args,
      session: this.#id,
      ...(this.agent === undefined ? {} : { agent: this.agent }),
      ...(carried === undefined ? {} : { history: carried.toSend(this.#id) }),
      ...(origins === undefined ? {} : { origins }),
      ...(turns === undefined ? {} : { turns }),
      ...(labels === undefined ? {} : { labels }),
      ...(context === undefined ? {} : { context }),
      ...(run === undefined ? {} : { run }),
      ...(undoes === undefined ? {} : { undoes }),
      ...(confirmation === undefined ? {} : { confirmation }),
    };
  }

  #take(answer: JsonObject, args: JsonObject, options: CallOptions): Checked {
    const check = readCheck(answer);
    const sent: SentCall = { arguments: args, origins: options.origins ?? {}, mayFill: this.#setup.fillsDefaults };
    this.#setup.carried?.take(answer, check, sent);
    if (this.#setup.carried === undefined && this.#setup.verifier !== undefined && answer['entry'] !== undefined) {
      if (check.session !== this.#id) this.#seen.clear();
      this.#seen.set(check.step, check);
    }
    this.#id = check.session;
    return check;
  }
}

/** A name that no other session of the caller has. */
export function newSessionId(): string {
  return encodeBase64url(crypto.getRandomValues(new Uint8Array(16)));
}

function readResult(answer: JsonObject, check: Checked | undefined): CallResult {
  const { outcome } = answer;
  const known = outcome === 'ran' || outcome === 'failed' || outcome === 'outcome_unknown' ? outcome : undefined;
  const receipt = answer['receipt'] === undefined ? undefined : asObject(answer['receipt'], 'the receipt’s answer');
  const refused = receipt !== undefined && receipt['decision'] !== 'allow';
  return {
    decision: check?.decision ?? (refused ? 'refuse' : 'allow'),
    check,
    receipt,
    outcome: known,
    status: optionalNumber(answer, 'status'),
    result: answer['result'],
    why: optionalText(answer, 'why'),
    replayed: answer['replayed'] === true,
  };
}
