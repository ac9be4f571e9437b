import { setTimeout as pause } from 'node:timers/promises';
import type { Followed } from '../../policy/conditions/followed.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { parseResult } from '../enforce/read-result.ts';
import { sendOnce } from '../enforce/send-once.ts';
import { answerOf, argumentsOf, settleClaim } from '../enforce/settle-claim.ts';
import { valueAt } from '../enforce/undo-arguments.ts';
import { findAnswers } from '../enforce/watched.ts';
import type { UpstreamAnswer } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import type { FollowPlan } from '../load/conditions.ts';
import type { ClaimRecord } from '../store/port.ts';

const TICK_MS = 500;
/** Claims that are looked at in one tick, oldest first. */
const MAX_CLAIMS = 5_000;
/** Reads that are on their way at once. */
const MAX_READS = 8;
/** A write is asked about after a tenth of its age, no sooner and no later than these. */
const SHORTEST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/** Why a claim is unknown that nobody follows any more: a person settles it. */
const GAVE_UP = 'gave_up';

/**
 * Follows writes whose outcome is unknown, where their tool says by which read: until the read says that they are done or
 * failed, or they are given up and a person must settle them. What is followed stands in the store alone, so it goes on
 * after a restart and on every replica; whichever settles a claim first wins.
 */
export class OutcomeFollower {
  readonly #gateway: Gateway;
  /** Link of a claim → when it is asked about next. Forgotten by a restart, which asks at once. */
  readonly #dueAtMs = new Map<string, number>();
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(gateway: Gateway) {
    this.#gateway = gateway;
  }

  /** Begins to follow, until `stop`. */
  start(): void {
    this.#running = this.#loop();
  }

  /** Resolves when the reads that are under way have ended. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #loop(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        if (this.#gateway.loaded.rules.followed.size > 0) await this.#tick();
      } catch (error) {
        this.#gateway.log.warn({ err: error }, 'outcomes could not be followed; it goes on later');
      }
      await pause(TICK_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  async #tick(): Promise<void> {
    const { store, loaded, log } = this.#gateway;
    const claims = await store.listClaims('outcome_unknown', MAX_CLAIMS);
    if (claims.length === MAX_CLAIMS)
      log.warn({ claims: MAX_CLAIMS }, 'so many outcomes are unknown that not all are followed');
    const now = this.#gateway.now();
    const links = new Set(claims.map(({ link }) => link));
    for (const link of this.#dueAtMs.keys()) if (!links.has(link)) this.#dueAtMs.delete(link);
    const due = claims.flatMap((claim) => {
      const plan = loaded.rules.followed.get(claim.tool);
      const isDue = claim.why !== GAVE_UP && (this.#dueAtMs.get(claim.link) ?? 0) <= now;
      return plan === undefined || !isDue ? [] : [{ claim, plan }];
    });
    for (let at = 0; at < due.length && !this.#stop.signal.aborted; at += MAX_READS) {
      await Promise.all(due.slice(at, at + MAX_READS).map(({ claim, plan }) => this.#follow(claim, plan)));
    }
  }

  async #follow(claim: ClaimRecord, plan: FollowPlan): Promise<void> {
    const { log } = this.#gateway;
    try {
      const followed = await askAfter(this.#gateway, claim, plan);
      const now = this.#gateway.now();
      if (followed === 'done' || followed === 'failed') {
        const outcome = followed === 'done' ? 'ran' : 'failed';
        await settleClaim(this.#gateway, claim, { outcome, why: 'followed' });
      } else if (now - claim.createdAtMs >= plan.giveUpAfterMs) await giveUp(this.#gateway, claim);
      else this.#dueAtMs.set(claim.link, now + pauseOf(now - claim.createdAtMs));
    } catch (error) {
      this.#dueAtMs.set(claim.link, this.#gateway.now() + LONGEST_PAUSE_MS);
      log.warn(
        { err: error, tool: claim.tool, step: claim.step },
        'an outcome could not be followed; it is asked again',
      );
    }
  }
}

function pauseOf(ageMs: number): number {
  return Math.min(Math.max(ageMs / 10, SHORTEST_PAUSE_MS), LONGEST_PAUSE_MS);
}

/** One read after a write. What cannot be asked or read says nothing. */
async function askAfter(gateway: Gateway, claim: ClaimRecord, plan: FollowPlan): Promise<Followed> {
  const { loaded } = gateway;
  const tool = loaded.catalogue.tools.get(plan.follow);
  const upstream = tool === undefined ? undefined : loaded.upstreams.get(tool.server);
  const args = argumentsOf(claim);
  const about = valueAt(args, plan.same) ?? valueAt(answerOf(claim), plan.same);
  if (tool === undefined || upstream === undefined || about === undefined) return 'unknown';
  const asked: JsonObject = { [plan.same]: about };
  if (tool.input.validate(asked).length > 0 || upstream.check(tool, asked).length > 0) return 'unknown';
  const answer = await sendOnce(gateway, undefined, upstream, {
    tool,
    arguments: asked,
    canonical: canonicalize(asked),
    passedHeaders: [],
    timeoutMs: loaded.timeoutMs(tool),
    whole: true,
  });
  const value = readAnswer(answer, plan.form);
  if (value === undefined) return 'unknown';
  const session = await gateway.store.findSessionById(claim.sid);
  const answers =
    session === undefined ? [] : await findAnswers(gateway, loaded, gateway.sessions.wake(session, false), claim.tool);
  return plan.judge(value, { arguments: args, answers });
}

function readAnswer(answer: UpstreamAnswer, form: FollowPlan['form']): JsonValue | undefined {
  if (answer.kind !== 'answer') return undefined;
  const { status, body, headers } = answer;
  if (!(body instanceof Uint8Array)) {
    body.destroy();
    return undefined;
  }
  if (status >= 300 || answer.saysFailed === true) return undefined;
  const at = headers.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'content-type');
  const value = parseResult(body, at < 0 ? undefined : headers[at + 1]);
  return form === 'mcp' ? valueAt(value, 'structuredContent') : value;
}

/** From here on it waits for a person, like every unknown outcome that nothing follows. */
async function giveUp(gateway: Gateway, claim: ClaimRecord): Promise<void> {
  const { link, fence, tool, agent, caller, step, run } = claim;
  const line = gateway.audit.prepare({
    event: 'outcome',
    by: 'gateway',
    outcome: 'outcome_unknown',
    why: GAVE_UP,
    tool,
    agent,
    caller,
    step,
    ...(run === undefined ? {} : { run }),
  });
  const from = ['outcome_unknown'] as const;
  const result = await gateway.commit([
    { op: 'move_claim', link, fence, from, to: 'outcome_unknown', why: GAVE_UP, atMs: gateway.now() },
    { op: 'outbox', replica: gateway.audit.replica, n: line.n, line: line.line },
  ]);
  if (result.ok) await gateway.audit.write(line);
  else gateway.audit.abandon(line);
}
