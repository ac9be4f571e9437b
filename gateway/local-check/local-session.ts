import type { Confirmation, Snapshot, StepFacts } from '../../policy/call.ts';
import { checkCall } from '../../policy/check.ts';
import type { ToolAnswer } from '../../policy/conditions/condition.ts';
import { appendToView, openView, reportToView, type SessionView } from '../../policy/session.ts';
import type { Tool } from '../../policy/tool.ts';
import type { Verdict } from '../../policy/verdict.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import type { SigningKey } from '../../receipts/crypto.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { argumentsDigest, originsDigest, resultDigest } from '../../receipts/digest.ts';
import type { Entry, EntryBody, Outcome } from '../../receipts/history.ts';
import { MAX_TOOL_LENGTH } from '../../receipts/history-parse.ts';
import { mayFollow } from '../../receipts/history-reports.ts';
import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { type Checked, readCheck } from '../client/check.ts';
import { NoSuchStep } from '../client/errors.ts';
import { History } from '../client/history.ts';
import { renderCheck } from '../enforce/answer-check.ts';
import { type ReadCall, readCall } from '../enforce/read-call.ts';
import { namedSteps } from '../enforce/step-facts.ts';
import { bindArguments, completeUndo, valueAt } from '../enforce/undo-arguments.ts';
import { type Loaded, settingsAt } from '../loaded.ts';
import type { LocalCounts } from './local-counts.ts';
import { OwnHistory } from './own-history.ts';

/** What a call may carry beside its tool and arguments; this side is believed, as a host is. */
export interface LocalCallOptions {
  readonly origins?: Readonly<Record<string, string>>;
  readonly turns?: readonly string[];
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  readonly context?: Readonly<Record<string, boolean>>;
  readonly run?: string;
  readonly undoes?: number;
  /** A person's yes to exactly this call, from {@link LocalSession.approve}. */
  readonly approval?: Approval;
}

/** A person's yes to a call that was answered `confirm`. Holds for that call, at that point, once. */
export interface Approval {
  readonly confirmation: Confirmation;
}

/** Made by `LocalChecker.session`. */
export interface LocalSessionSetup {
  readonly loaded: Loaded;
  readonly signing: SigningKey;
  readonly issuer: string;
  readonly counts: LocalCounts;
  readonly now: () => number;
  readonly nonce: Uint8Array;
  readonly agent: string;
  readonly id: string;
}

interface Step {
  readonly tool: Tool;
  readonly link: string;
  readonly entry: Entry;
  readonly arguments: JsonObject;
  readonly outcome?: Outcome;
  readonly result?: JsonValue;
  readonly undoAllowed: boolean;
  /** What a confirm asked, for its approval. */
  readonly asked?: Confirmation['asked'];
}

/** One conversation, checked and recorded in this process. */
export class LocalSession {
  readonly id: string;
  readonly agent: string;
  readonly #setup: LocalSessionSetup;
  readonly #own: OwnHistory;
  readonly #steps = new Map<number, Step>();
  readonly #spent = new Set<string>();
  #view: SessionView = openView();

  constructor(setup: LocalSessionSetup) {
    this.id = setup.id;
    this.agent = setup.agent;
    this.#setup = setup;
    const { id: session, issuer, loaded } = setup;
    this.#own = new OwnHistory(setup.signing, setup.nonce, { session, issuer, audience: loaded.audience });
  }

  /** Decides one call, and records the decision as the next entry of the history. Arguments are taken as given: nothing is filled in. */
  check(tool: string, args: JsonObject, options: LocalCallOptions = {}): Checked {
    const read = this.#read(tool, args, options);
    const snapshot = this.#snapshot(read, options.approval);
    const verdict = checkCall(snapshot, read.call);
    const entry = this.#append(read, snapshot, verdict);
    if (verdict.reasons[0] === 'confirmed' && options.approval !== undefined) {
      this.#spent.add(options.approval.confirmation.id);
    }
    const { session } = this.#own.header;
    return readCheck({ ...renderCheck(read, verdict, { session, step: entry.step, entry: { ...entry } }) });
  }

  /** This side's person said yes to a call that was answered `confirm`. Throws `NoSuchStep` for any other check. */
  approve(check: Checked): Approval {
    const step = this.#steps.get(check.step);
    if (check.session !== this.id || step?.asked === undefined) {
      throw new NoSuchStep('no_such_check', `step ${check.step} of this session asked nothing`);
    }
    const { link, tool, entry, asked } = step;
    const expires = entry.at + this.#setup.loaded.confirmations.ttlMs;
    const of = { session: this.id, link, step: entry.step, tool: tool.id, agent: entry.agent };
    const confirmation = { ...of, id: link, arguments: entry.arguments, expires, spent: false, asked };
    return { confirmation: { ...confirmation, point: this.#setup.loaded.confirmations.point ?? 'exact' } };
  }

  /** Records what became of an allowed call. Throws `NoSuchStep` where the step was not allowed, or cannot become that. */
  ran(check: Checked, outcome: Outcome, result?: JsonValue): void {
    const step = this.#steps.get(check.step);
    const allowed = check.session === this.id && step?.entry.decision === 'allow';
    if (!allowed || !mayFollow(step.outcome, outcome)) {
      throw new NoSuchStep('no_such_check', `step ${check.step} of this session cannot be reported \`${outcome}\``);
    }
    this.#report(check.step, step, outcome, result);
    const { undoes } = step.entry;
    const undone = undoes === undefined ? undefined : this.#steps.get(undoes);
    if (undoes === undefined || undone === undefined) return;
    if (outcome === 'ran') this.#report(undoes, undone, 'compensated', undefined);
    if (outcome === 'failed') this.#steps.set(undoes, { ...undone, undoAllowed: false });
  }

  /** A receipt: the history cut to the entry of a check, the newest where none is given. Throws `NoSuchStep`. */
  receipt(check?: Checked): History {
    if (check !== undefined && check.session !== this.id)
      throw new NoSuchStep('no_receipt', 'the check is of another session');
    return this.history().cut(check?.step);
  }

  /** The whole history so far. */
  history(): History {
    return new History(this.#own.toJSON());
  }

  #report(number: number, step: Step, outcome: Outcome, result: JsonValue | undefined): void {
    const { tool, entry, outcome: before } = step;
    const { run, undoes } = entry;
    const digest =
      result === undefined ? {} : { result: resultDigest(nodeCrypto, this.#own.nonce, canonicalize(result)) };
    this.#own.report(number, { outcome, ...digest });
    const of = {
      tool,
      before,
      after: outcome,
      ...(run === undefined ? {} : { run }),
      ...(undoes === undefined ? {} : { undoes }),
    };
    this.#view = reportToView(this.#view, of);
    if (outcome === 'failed') this.#setup.counts.release(step.link);
    this.#steps.set(number, { ...step, outcome, ...(result === undefined ? {} : { result }) });
  }

  #read(tool: string, args: JsonObject, options: LocalCallOptions): ReadCall {
    const { origins = {}, turns = [], labels = {}, context = {}, run, undoes } = options;
    const { loaded, issuer } = this.#setup;
    return readCall(loaded, {
      caller: { name: issuer, host: true, agents: new Set([this.agent]) },
      tool,
      arguments: args,
      members: {
        agent: this.agent,
        ...{ origins, turns, labels, context },
        ...(run === undefined ? {} : { run }),
        ...(undoes === undefined ? {} : { undoes }),
      },
      // A receipt covers the arguments as they are sent, so nothing is filled in.
      byReceipt: true,
      purpose: 'decide',
      via: 'api',
      wantEntry: true,
      passedHeaders: [],
    });
  }

  #snapshot(read: ReadCall, approval: Approval | undefined): Snapshot {
    const { loaded, counts, now } = this.#setup;
    const { call, tool } = read;
    const nowMs = now();
    const { nonce, head } = this.#own;
    const { run } = call;
    const counted = { nowMs, arguments: call.arguments, caller: call.caller, session: this.id };
    const buckets =
      tool === undefined ? [] : loaded.rules.rules.buckets(tool.id, run === undefined ? counted : { ...counted, run });
    const confirmation = approval?.confirmation;
    return {
      catalogue: loaded.catalogue,
      settings: settingsAt(loaded, nowMs),
      session: { id: this.id, view: this.#view, head },
      steps: new Map(namedSteps(read).flatMap((number) => this.#factsOf(number))),
      policy: loaded.policy,
      digests: {
        arguments: argumentsDigest(nodeCrypto, nonce, read.canonical),
        origins: originsDigest(nodeCrypto, nonce, read.canonicalOrigins),
      },
      nowMs,
      usage: { counted: counts.count(buckets) },
      answers: tool === undefined ? [] : this.#answers(loaded.answersRead(tool.id)),
      step7: loaded.conditions,
      step8: loaded.rulebook,
      ...(confirmation === undefined
        ? {}
        : { confirmation: { ...confirmation, spent: this.#spent.has(confirmation.id) } }),
    };
  }

  #factsOf(number: number): readonly (readonly [number, StepFacts])[] {
    const step = this.#steps.get(number);
    if (step === undefined) return [];
    const { entry, tool, link, outcome, result, undoAllowed } = step;
    const bound = bindArguments(tool, step.arguments);
    const undo = result === undefined ? bound : (completeUndo(tool, bound, result) ?? bound);
    const facts: StepFacts = {
      step: number,
      link,
      toolId: tool.id,
      agent: entry.agent,
      outcome,
      labels: entry.labels,
      undoAllowed,
      compareField: (field, value) => {
        const seen = result === undefined || tool.result?.declares(field) !== true ? undefined : valueAt(result, field);
        if (seen === undefined) return 'unseen';
        return canonicalize(seen) === canonicalize(value) ? 'equal' : 'other';
      },
      ...(entry.undoes === undefined ? {} : { undoes: entry.undoes }),
      ...(entry.run === undefined ? {} : { run: entry.run }),
      ...(Object.keys(undo).length === 0 ? {} : { undoArguments: canonicalize(undo) }),
    };
    return [[number, facts]];
  }

  /** What tools answered, newest first. */
  #answers(tools: readonly string[]): readonly ToolAnswer[] {
    return [...this.#steps.values()]
      .filter(({ tool, result, outcome }) => tools.includes(tool.id) && outcome === 'ran' && isObject(result))
      .map(({ tool, entry, arguments: args, result }) => ({
        tool: tool.id,
        step: entry.step,
        arguments: args,
        result: isObject(result) ? result : {},
      }))
      .reverse();
  }

  #append(read: ReadCall, snapshot: Snapshot, verdict: Verdict): Entry {
    const { call } = read;
    const { run, undoes } = call;
    const { tool, decision, labels, reasons } = verdict;
    const body: EntryBody = {
      step: this.#own.nextStep,
      tool: tool?.id ?? [...call.tool].slice(0, MAX_TOOL_LENGTH).join(''),
      agent: verdict.agent,
      ...snapshot.digests,
      ...{ labels, decision, reasons },
      at: snapshot.nowMs,
      policy: snapshot.policy,
      ...(run === undefined ? {} : { run }),
      ...(undoes === undefined ? {} : { undoes }),
    };
    const entry = this.#own.append(body);
    if (tool === undefined) return entry;
    const link = this.#own.head?.link ?? '';
    this.#view = appendToView(this.#view, { ...body, tool });
    const asked = {
      reasons,
      run,
      undoes,
      origins: body.origins,
      labels,
      caller: call.caller.name,
      policy: body.policy,
    };
    const step = { tool, link, entry, arguments: call.arguments, undoAllowed: false };
    this.#steps.set(entry.step, decision === 'confirm' ? { ...step, asked } : step);
    if (decision !== 'allow') return entry;
    const { rules } = this.#setup.loaded.rules;
    if (undoes === undefined) this.#setup.counts.hold(rules.reserve(tool.id, call, snapshot), link, snapshot.nowMs);
    const undone = undoes === undefined ? undefined : this.#steps.get(undoes);
    if (undoes !== undefined && undone !== undefined) this.#steps.set(undoes, { ...undone, undoAllowed: true });
    return entry;
  }
}
