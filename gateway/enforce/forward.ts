import { performance } from 'node:perf_hooks';
import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { CallOutcome, EnforceAnswer, UpstreamAnswer } from '../exchange.ts';
import { faultPoint } from '../fault-points.ts';
import type { Gateway } from '../gateway.ts';
import type { StoredAnswer } from '../store/port.ts';
import type { Allowed } from './allowed.ts';
import { commitFor } from './commit-for.ts';
import { ANSWER_NOT_FILTERED, filterAnswer } from './filter-answer.ts';
import { headerOf, outcomeOfAnswer } from './outcome-of.ts';
import { quietRelay } from './quiet-relay.ts';
import { settleAtHand } from './ride-along.ts';
import { sendCall } from './send.ts';
import { releaseClaim, settle } from './settle.ts';
import type { Settled } from './settled.ts';

/** Sends an allowed call once and stores what became of it. Its claim, begun in `gateway.flights`, is ended here. */
export async function forward(gateway: Gateway, allowed: Allowed): Promise<EnforceAnswer> {
  gateway.underWay.begin();
  try {
    return await sendAndSettle(gateway, allowed);
  } catch (error) {
    land(gateway, allowed);
    throw error;
  } finally {
    gateway.underWay.end();
  }
}

/** The call is no longer this process's to end: what is still open of it is recovery's. */
function land(gateway: Gateway, { claim }: Allowed): void {
  if (claim !== undefined) gateway.flights.end(claim.link);
}

async function sendAndSettle(gateway: Gateway, allowed: Allowed): Promise<EnforceAnswer> {
  const { read, tool, claim } = allowed;
  const upstream = read.loaded.upstreams.get(tool.server);
  if (upstream === undefined) throw new Error(`no upstream is loaded for the server of ${tool.id}`);
  const writing = writeDecision(gateway, allowed);
  if (writing !== undefined) await writing;
  if (claim !== undefined) faultPoint('after-claim');
  const startedAt = performance.now();
  const { passedHeaders, traceparent, gone, relay } = read.request;
  const { rules } = read.loaded;
  const filters = rules.filters.has(tool.id);
  const judged = read.loaded.failedWhen.get(tool.id)?.answer !== undefined;
  const whole = filters || judged || rules.watched.has(tool.id) || rules.followed.has(tool.id);
  const sent = await sendCall(gateway, allowed, upstream, {
    tool,
    arguments: read.call.arguments,
    canonical: read.canonical,
    // What something reads comes as it is, not compressed for the client.
    passedHeaders: whole ? withoutHeader(passedHeaders, 'accept-encoding') : passedHeaders,
    whole,
    timeoutMs: read.loaded.timeoutMs(tool),
    ...(claim?.upstreamKey === undefined || !claim.writes ? {} : { upstreamKey: claim.upstreamKey }),
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(relay === undefined ? {} : { relay: filters ? quietRelay(relay) : relay }),
    // A write whose client went away still has an outcome, and a repeat with its key gets it.
    ...(gone === undefined || tool.writes ? {} : { abort: gone() }),
    ...(claim?.state === 'claimed' ? { onSending: () => markSending(gateway, allowed) } : {}),
  });
  const upstreamMs = performance.now() - startedAt;
  if (claim !== undefined) faultPoint(allowed.place.undoes === undefined ? 'after-answer' : 'after-undo-sent');
  gateway.metrics.upstreamTook(upstreamMs);
  const lookups = { arguments: read.call.arguments, answers: allowed.answers ?? [] };
  const filtered = filterAnswer(read.loaded, tool.id, sent, lookups);
  if (filtered.kind === 'unreadable') {
    const { status } = filtered;
    const gone = { outcome: 'ran', upstreamMs, upstreamStatus: status, answer: { kind: 'tombstone', status } } as const;
    await settleOrTryOn(gateway, allowed, gone);
    return { kind: 'problem', problem: ANSWER_NOT_FILTERED };
  }
  const { answer } = filtered;
  const heldBack = filtered.kind === 'filtered' ? filtered.heldBack : undefined;
  const outcome = settleWhenKnown(gateway, allowed, answer, upstreamMs, heldBack);
  return {
    kind: 'forwarded',
    ...(allowed.check === undefined ? {} : { check: allowed.check }),
    ...(allowed.receipt === undefined ? {} : { receipt: allowed.receipt }),
    answer,
    ...(heldBack === undefined ? {} : { heldBack }),
    outcome,
    ...(claim?.upstreamKey === undefined || !claim.writes ? {} : { upstreamKey: claim.upstreamKey }),
  };
}

/** The decision is in the log before anything is sent; where it cannot be, the claim is let go and nothing is sent. */
function writeDecision(gateway: Gateway, allowed: Allowed): Promise<void> | undefined {
  const { line, logged } = allowed;
  const written = line === undefined ? logged : gateway.audit.write(line);
  return written?.catch(async (error: unknown) => {
    await releaseClaim(gateway, allowed, 'audit_unavailable');
    throw error;
  });
}

/** From here on a crash leaves the outcome unknown instead of the call unsent. Rejects where the store does not take it. */
async function markSending(gateway: Gateway, allowed: Allowed): Promise<void> {
  const { claim } = allowed;
  if (claim === undefined) return;
  const { link, fence } = claim;
  const moved = { op: 'move_claim', link, fence, from: ['claimed'], to: 'sending', atMs: gateway.now() } as const;
  const result = await commitFor(gateway, allowed.read, [moved]);
  if (!result.ok) throw new Error('the claim of the call was taken over before it was sent');
  faultPoint('after-sending');
}

function settleWhenKnown(
  gateway: Gateway,
  allowed: Allowed,
  answer: UpstreamAnswer,
  upstreamMs: number,
  heldBack: number | undefined,
): Promise<CallOutcome> {
  const said = readOutcome(allowed, answer, upstreamMs);
  const settled = (answered: Settled): Settled => {
    // What the backend took on is not yet what it did, where the tool says how to find out.
    const followed = answered.outcome === 'ran' && allowed.read.loaded.rules.followed.has(allowed.tool.id);
    const read: Settled = followed ? { ...answered, outcome: 'outcome_unknown', why: 'followed' } : answered;
    return heldBack === undefined ? read : { ...read, heldBack };
  };
  if (said instanceof Promise) {
    return gateway.underWay.track(said.then((answered) => settleOrTryOn(gateway, allowed, settled(answered))));
  }
  const known = settled(said);
  if (settleAtHand(gateway, allowed, known)) return Promise.resolve(known.outcome);
  return gateway.underWay.track(settleOrTryOn(gateway, allowed, known));
}

/** Stores an outcome; where it cannot be stored now, nobody knows of it yet, and it is tried on. */
async function settleOrTryOn(gateway: Gateway, allowed: Allowed, settled: Settled): Promise<CallOutcome> {
  try {
    const recorded = await settleAsOwner(gateway, allowed, settled);
    if (allowed.claim !== undefined) faultPoint('after-outcome');
    land(gateway, allowed);
    return recorded;
  } catch (error) {
    const { key, step } = allowed.place;
    const trace_id = allowed.read.request.span?.traceId;
    gateway.log.error({ err: error, session: key.session, step, trace_id }, 'an outcome is not stored yet; trying on');
    void storeLater(gateway, allowed, settled).finally(() => land(gateway, allowed));
    return 'outcome_unknown';
  }
}

/**
 * Stores an outcome and resolves with the one that is recorded: somebody else's word, where the claim was taken over and
 * ended meanwhile. Rejects while whoever took it is still at work, so that what was seen here is offered again.
 */
async function settleAsOwner(gateway: Gateway, allowed: Allowed, settled: Settled): Promise<CallOutcome> {
  if (await settle(gateway, allowed, settled)) return settled.outcome;
  const { claim } = allowed;
  const now = claim === undefined ? undefined : await gateway.store.findClaim({ link: claim.link });
  if (now === undefined) return 'outcome_unknown';
  if (now.state === 'claimed' || now.state === 'sending') {
    throw new Error('the claim was taken over by one that has not ended it yet');
  }
  return now.state;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

/** Tries on to store what is known, for as long as the claim is this process's own. Never rejects. */
async function storeLater(gateway: Gateway, allowed: Allowed, settled: Settled): Promise<void> {
  for (let pauseMs = FIRST_PAUSE_MS; !gateway.stopping.aborted; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    await pause(pauseMs, undefined, { ref: false });
    try {
      await settleAsOwner(gateway, allowed, settled);
      return;
    } catch (error) {
      gateway.log.warn({ err: error }, 'an outcome is still not stored');
    }
  }
}

/** What an answer says of the call (docs/execution.md, "States of a call"); a promise where it still streams. */
function readOutcome(allowed: Allowed, answer: UpstreamAnswer, upstreamMs: number): Settled | Promise<Settled> {
  if (answer.kind === 'not_sent') return { outcome: 'failed', upstreamMs, why: answer.code };
  if (answer.kind === 'unclear') return { outcome: 'outcome_unknown', upstreamMs, why: answer.code };
  const { status, body, headers } = answer;
  const outcome = outcomeOfAnswer(allowed, answer);
  const upstreamStatus = status;
  if (body instanceof Uint8Array) {
    // A read that rides along has no claim to keep its answer in.
    if (allowed.rides !== undefined) return { outcome, upstreamMs, upstreamStatus };
    const contentType = headerOf(headers, 'content-type');
    const kept = keepAnswer(allowed, status, contentType, body);
    const known = { outcome, body, upstreamMs, upstreamStatus, answer: kept };
    return contentType === undefined ? known : { ...known, contentType };
  }
  const answerKept: StoredAnswer = { kind: 'tombstone', status };
  return endOf(body).then((ended) =>
    ended === undefined
      ? { outcome, upstreamMs, upstreamStatus, answer: answerKept }
      : { outcome: 'outcome_unknown', upstreamMs, upstreamStatus, why: ended },
  );
}

function keepAnswer(allowed: Allowed, status: number, contentType: string | undefined, body: Uint8Array): StoredAnswer {
  if (body.length > allowed.read.loaded.maxAnswerBytes) return { kind: 'tombstone', status };
  return { kind: 'kept', status, body, ...(contentType === undefined ? {} : { contentType }) };
}

/** Resolves when a stream has ended: with nothing where it ended whole, else with the code of what broke it. */
function endOf(body: Readable): Promise<string | undefined> {
  // A stream that broke before anybody listened tells of it no more.
  if (body.destroyed) return Promise.resolve(body.readableEnded ? undefined : 'stream_broken');
  return new Promise((resolve) => {
    body.once('end', () => resolve(undefined));
    body.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'stream_broken'));
    body.once('close', () => resolve(body.readableEnded ? undefined : 'stream_broken'));
  });
}

function withoutHeader(headers: readonly string[], name: string): readonly string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]?.toLowerCase() !== name) kept.push(headers[i] ?? '', headers[i + 1] ?? '');
  }
  return kept;
}
