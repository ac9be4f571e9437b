import { performance } from 'node:perf_hooks';
import { checkCall } from '../../policy/check.ts';
import { openView } from '../../policy/session.ts';
import type { Verdict } from '../../policy/verdict.ts';
import type { CallNames } from '../audit/events.ts';
import type { CallOutcome, EnforceAnswer } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import { newSession } from '../sessions.ts';
import { renderCheck } from './answer-check.ts';
import { chooseSession } from './choose-session.ts';
import { outcomeOfAnswer } from './outcome-of.ts';
import type { ReadCall } from './read-call.ts';
import { sendOnce } from './send-once.ts';
import { takeSnapshot } from './snapshot.ts';
import { namedSteps } from './step-facts.ts';

/**
 * A read while the store is away, where the operator says `store.unavailable: allow_reads`: only of a tool that no rule
 * counts, orders, taints by or takes a value of, so that nothing of the session decides it. It is checked and logged as
 * ever, and stands in no history. `undefined` where the call is none of these: then it is refused.
 */
export async function readWithoutStore(gateway: Gateway, read: ReadCall): Promise<EnforceAnswer | undefined> {
  const { tool, loaded, request, call } = read;
  const { members } = request;
  const plain =
    request.purpose === 'forward' && !request.byReceipt && call.run === undefined && call.undoes === undefined;
  const bare = members.history === undefined && members.confirmation === undefined && namedSteps(read).length === 0;
  if (!loaded.allowReadsWithoutStore || tool === undefined || !loaded.unwatched.has(tool.id) || !plain || !bare) {
    return undefined;
  }
  const startedAt = performance.now();
  const { key } = chooseSession(gateway, read);
  const made = { mode: 'held', audience: loaded.audience, view: openView() } as const;
  const session = gateway.sessions.wake(newSession(key, made, gateway.random, gateway.now()), true);
  const opened = { kind: 'session', session, prevReport: {}, believed: false } as const;
  const snapshot = await takeSnapshot(gateway, read, opened, session.record.view);
  const verdict = checkCall(snapshot, call);
  if (verdict.decision !== 'allow') return undefined;
  request.span?.checked(startedAt);
  const names = namesOf(read, verdict, key.session);
  await gateway.audit.append({
    event: 'decision',
    via: request.via,
    decision: 'allow',
    reasons: verdict.reasons,
    policy: snapshot.policy,
    latency: { check: performance.now() - startedAt },
    ...names,
  });
  return send(gateway, read, verdict, names);
}

async function send(gateway: Gateway, read: ReadCall, verdict: Verdict, names: CallNames): Promise<EnforceAnswer> {
  const { loaded, request, tool } = read;
  const upstream = tool === undefined ? undefined : loaded.upstreams.get(tool.server);
  if (tool === undefined || upstream === undefined) throw new Error('no upstream is loaded for the server of a read');
  const sentAt = performance.now();
  const { gone, traceparent, passedHeaders } = request;
  const answer = await sendOnce(gateway, request.span, upstream, {
    tool,
    arguments: read.call.arguments,
    canonical: read.canonical,
    passedHeaders,
    whole: false,
    timeoutMs: loaded.timeoutMs(tool),
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(gone === undefined ? {} : { abort: gone() }),
  });
  const outcome: CallOutcome = outcomeOfAnswer({ read, tool }, answer);
  const latency = { upstream: performance.now() - sentAt };
  const status = answer.kind === 'answer' ? { upstream_status: answer.status } : { why: answer.code };
  await gateway.audit.append({ event: 'outcome', by: 'gateway', outcome, latency, ...names, ...status });
  const check = renderCheck(read, verdict, { session: names.session ?? '', step: 0 });
  return { kind: 'forwarded', check, answer, outcome: Promise.resolve(outcome) };
}

function namesOf(read: ReadCall, verdict: Verdict, session: string): CallNames {
  const { request, tool } = read;
  const names = { agent: verdict.agent, caller: request.caller.name, session, ...(tool ? { tool: tool.id } : {}) };
  return request.route === undefined ? names : { ...names, route: request.route };
}
