import type { Outcome } from '../../receipts/history.ts';
import { mayFollow } from '../../receipts/history-reports.ts';
import { parseJson } from '../../receipts/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { SESSION_BUSY } from '../enforce/problems.ts';
import { readResult } from '../enforce/read-result.ts';
import { reportedMoves } from '../enforce/settle.ts';
import { outcomeOf, readBody } from '../enforce/step-facts.ts';
import { endHolds, restoreSpend } from '../enforce/usage.ts';
import { watchAnswer } from '../enforce/watched.ts';
import type { Problem } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import { fault } from '../http/problems.ts';
import { effectsOf, NO_EFFECTS, type StepOutcome } from '../runs/outcome-effects.ts';
import { applyReports, type StepReport } from '../session-reports.ts';
import type { Session } from '../sessions.ts';
import type { ClaimRecord, Operation, SessionKey, StepRecord } from '../store/port.ts';
import {
  type ApiBindings,
  ApiProblem,
  badMember,
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
    const read = await readReport(gateway, session, host, report);
    const { own, claim } = read;
    const effects = host ? await effectsOf(gateway, session, read.of) : NO_EFFECTS;
    const change = applyReports(session, [own, ...effects.reports], effects.alsoChange);
    const line = gateway.audit.prepare({
      event: 'outcome',
      by: host ? 'host' : 'agent',
      outcome: report.outcome,
      caller: key.caller,
      session: key.session,
      step: report.step,
      ...(own.tool === undefined ? {} : { tool: own.tool.id }),
    });
    const lines = [...effects.lines, line];
    const result = await gateway.commit([
      ...change.operations,
      ...(claim === undefined || !host ? [] : reportedMoves(gateway, claim, report.outcome)),
      ...(await countedBy(gateway, session, host, report)),
      ...effects.operations,
      ...lines.map(({ n, line: text }) => ({ op: 'outbox', replica: gateway.audit.replica, n, line: text }) as const),
    ]);
    if (result.ok) {
      gateway.sessions.keep(change.record, session);
      if (effects.operations.length > 0) gateway.undoWork.ring();
      for (const stored of lines) await gateway.audit.write(stored);
      return;
    }
    for (const unwritten of lines) gateway.audit.abandon(unwritten);
    gateway.sessions.forget(key);
  }
  throw new ApiProblem(SESSION_BUSY);
}

interface ReadReport {
  readonly own: StepReport;
  readonly of: StepOutcome;
  readonly claim: ClaimRecord | undefined;
}

async function readReport(gateway: Gateway, session: Session, host: boolean, report: Report): Promise<ReadReport> {
  const [record] = await gateway.store.findSteps(session.record.sid, [report.step]);
  if (record === undefined) throw new ApiProblem(noSuchStep('step'));
  const body = readBody(record);
  if (body.decision !== 'allow') throw new ApiProblem(notReportable('the step was not allowed, so nothing of it ran'));
  const claim = await gateway.store.findClaim({ link: record.link });
  if (record.forwarded || claim?.runBy === 'gateway') {
    throw new ApiProblem(notReportable('the gateway forwarded this call and knows itself what became of it'));
  }
  const before = outcomeOf(record.outcome);
  // A step that was undone because nobody knew of it, and was done after all, is undone once more.
  const late = host && before === 'compensated' && report.outcome === 'ran' && claim?.state === 'outcome_unknown';
  if (!late && !mayFollow(before, report.outcome)) {
    throw new ApiProblem(notReportable(`\`${report.outcome}\` cannot follow \`${before ?? 'nothing'}\``));
  }
  const tool = gateway.loaded.catalogue.tools.get(body.tool);
  const { step, outcome, result } = report;
  const of = {
    ...(body.run === undefined ? {} : { run: body.run }),
    ...(body.undoes === undefined ? {} : { undoes: body.undoes }),
  };
  const own: StepReport = {
    step,
    tool,
    before: record.seen ? before : undefined,
    after: outcome,
    believed: host,
    quiet: late,
    ...of,
    ...(tool === undefined || result === undefined
      ? {}
      : readResult(gateway, session, { step, tool, boundArguments: boundOf(record) }, result)),
  };
  return { own, of: { step, tool, outcome, late: true, ...of }, claim };
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
