import type { Outcome } from '../../receipts/history.ts';
import { mayFollow } from '../../receipts/history-reports.ts';
import { parseJson } from '../../receipts/json.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { compensatedBy } from '../compensated-step.ts';
import { SESSION_BUSY } from '../enforce/problems.ts';
import { readResult } from '../enforce/read-result.ts';
import { outcomeOf, readBody } from '../enforce/step-facts.ts';
import { endHolds, restoreSpend } from '../enforce/usage.ts';
import { watchAnswer } from '../enforce/watched.ts';
import type { Problem } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import { fault } from '../http/problems.ts';
import { applyReports, type StepReport } from '../session-reports.ts';
import type { Session } from '../sessions.ts';
import type { ClaimRecord, Operation, SessionKey, StepRecord } from '../store/port.ts';
import {
  type ApiBindings,
  ApiProblem,
  badMember,
  isObject,
  jsonAnswer,
  refuseUnknown,
  requireCaller,
  requireObject,
  requireStep,
  requireText,
} from './api-context.ts';

const MAX_ATTEMPTS = 8;

interface Report {
  readonly step: number;
  readonly outcome: Outcome;
  /** Absent where the caller sent none. */
  readonly result?: JsonValue;
}

/**
 * `POST /v1/outcomes`: what became of a call that its caller ran itself. A host is believed; an agent's report is
 * recorded and loosens nothing; of a call that the gateway forwarded only the gateway says.
 */
export async function postOutcome(env: ApiBindings): Promise<Response> {
  const caller = requireCaller(env);
  const body = await requireObject(env);
  refuseUnknown(body, ['session', 'step', 'outcome', 'result']);
  const outcome = outcomeOf(requireText(body, 'outcome'));
  if (outcome === undefined) throw badMember('outcome', 'must be ran, failed, outcome_unknown or compensated');
  const step = requireStep(body, 'step');
  const report: Report = { step, outcome, ...(Object.hasOwn(body, 'result') ? resultOf(body) : {}) };
  const key = { issuer: env.gateway.loaded.issuer, caller: caller.name, session: requireText(body, 'session') };
  await env.gateway.sessions.inLine(key, () => recordReport(env.gateway, key, caller.host, report));
  return jsonAnswer({ session: key.session, step, outcome, believed: caller.host });
}

function resultOf(body: JsonObject): { readonly result: JsonValue } {
  return { result: body['result'] ?? null };
}

async function recordReport(gateway: Gateway, key: SessionKey, host: boolean, report: Report): Promise<void> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const session = await gateway.sessions.find(key);
    if (session === undefined) throw new ApiProblem(noSuchStep('session'));
    const { reports, ends } = await readStep(gateway, session, host, report);
    const change = applyReports(session, reports);
    const [own] = reports;
    const line = gateway.audit.prepare({
      event: 'outcome',
      by: host ? 'host' : 'agent',
      outcome: report.outcome,
      caller: key.caller,
      session: key.session,
      step: report.step,
      ...(own?.tool === undefined ? {} : { tool: own.tool.id }),
    });
    const outbox = { op: 'outbox', replica: gateway.audit.replica, n: line.n, line: line.line } as const;
    const counted = await countedBy(gateway, session, host, report);
    const result = await gateway.commit([...change.operations, ...ends, ...counted, outbox]);
    if (result.ok) {
      gateway.sessions.keep(change.record, session);
      await gateway.audit.write(line);
      return;
    }
    gateway.audit.abandon(line);
    gateway.sessions.forget(key);
  }
  throw new ApiProblem(SESSION_BUSY);
}

interface ReadStep {
  readonly reports: readonly StepReport[];
  /** What ends with the call: its claim, where a receipt was spent for it. */
  readonly ends: readonly Operation[];
}

async function readStep(gateway: Gateway, session: Session, host: boolean, report: Report): Promise<ReadStep> {
  const [record] = await gateway.store.findSteps(session.record.sid, [report.step]);
  if (record === undefined) throw new ApiProblem(noSuchStep('step'));
  const body = readBody(record);
  if (body.decision !== 'allow') throw new ApiProblem(notReportable('the step was not allowed, so nothing of it ran'));
  const claim = await gateway.store.findClaim({ link: record.link });
  if (record.forwarded || claim?.runBy === 'gateway') {
    throw new ApiProblem(notReportable('the gateway forwarded this call and knows itself what became of it'));
  }
  const before = outcomeOf(record.outcome);
  if (!mayFollow(before, report.outcome)) {
    throw new ApiProblem(notReportable(`\`${report.outcome}\` cannot follow \`${before ?? 'nothing'}\``));
  }
  const tool = gateway.loaded.catalogue.tools.get(body.tool);
  const own: StepReport = {
    step: report.step,
    tool,
    before: record.seen ? before : undefined,
    after: report.outcome,
    believed: host,
    ...(body.run === undefined ? {} : { run: body.run }),
    ...(body.undoes === undefined ? {} : { undoes: body.undoes }),
    ...(tool === undefined || report.result === undefined
      ? {}
      : readResult(gateway, session, { step: report.step, tool, boundArguments: boundOf(record) }, report.result)),
  };
  const ends = host ? endsOf(gateway, record.link, claim, report.outcome) : [];
  if (body.undoes === undefined || report.outcome !== 'ran' || !host) return { reports: [own], ends };
  return { reports: [own, ...(await compensatedBy(gateway, session, body.undoes))], ends };
}

function endsOf(
  gateway: Gateway,
  link: string,
  claim: ClaimRecord | undefined,
  outcome: Outcome,
): readonly Operation[] {
  if (outcome === 'compensated' || outcome === 'outcome_unknown') return [];
  const from = ['claimed', 'sending', 'outcome_unknown'] as const;
  const at = { atMs: gateway.now(), why: 'reported' } as const;
  return claim === undefined ? [] : [{ op: 'move_claim', link, fence: claim.fence, from, to: outcome, ...at }];
}

/**
 * What a host's report does to reservations and to what rules read later; an agent's loosens nothing. The arguments that
 * were checked are not kept, so an answer is tied to its call by what the result itself says.
 */
async function countedBy(
  gateway: Gateway,
  session: Session,
  host: boolean,
  report: Report,
): Promise<readonly Operation[]> {
  if (!host) return [];
  const { loaded } = gateway;
  const { sid } = session.record;
  const [record] = await gateway.store.findSteps(sid, [report.step]);
  if (record === undefined) return [];
  const { tool: toolId, undoes } = readBody(record);
  const operations: Operation[] = [];
  if (report.outcome === 'ran' || report.outcome === 'failed') {
    operations.push(...endHolds(loaded, toolId, record.link, report.outcome));
  }
  if (report.outcome !== 'ran') return operations;
  const { step, result } = report;
  const watched = { sid, step, toolId, arguments: {}, ...(result === undefined ? {} : { result }) };
  operations.push(...watchAnswer(loaded, watched));
  if (undoes !== undefined && loaded.catalogue.tools.get(toolId)?.restores === true) {
    const [undone] = await gateway.store.findSteps(sid, [undoes]);
    if (undone !== undefined) operations.push(...restoreSpend(loaded, readBody(undone).tool, undone.link));
  }
  return operations;
}

function boundOf(record: StepRecord): JsonObject {
  const bound = record.undoArguments === undefined ? undefined : parseJson(record.undoArguments);
  return isObject(bound) ? bound : {};
}

function noSuchStep(what: string): Problem {
  return fault('not_found', `this caller has no such ${what}`);
}

function notReportable(why: string): Problem {
  return fault('outcome_recorded', why);
}
