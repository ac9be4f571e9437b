import { decodeBase64url } from '../../receipts/base64url.ts';
import type { Entry, EntryBody, History } from '../../receipts/history.ts';
import { signLink } from '../../receipts/history-links.ts';
import { outcomeOf, readBody } from '../enforce/step-facts.ts';
import type { Gateway } from '../gateway.ts';
import { fault } from '../http/problems.ts';
import { headerOf, type Session } from '../sessions.ts';
import type { Operation, StepRecord } from '../store/port.ts';
import { type ApiBindings, ApiProblem, jsonAnswer, requireCaller } from './api-context.ts';

/** `GET /v1/sessions/{id}`: the history that the gateway holds of a session of this caller, signed. */
export async function getSession(env: ApiBindings, id: string): Promise<Response> {
  const caller = requireCaller(env);
  const { gateway } = env;
  const key = { issuer: gateway.loaded.issuer, caller: caller.name, session: id };
  const history = await gateway.sessions.inLine(key, async () => {
    const session = await gateway.sessions.findNow(key);
    if (session === undefined) {
      throw new ApiProblem(fault('not_found', 'this caller has no session of that name'));
    }
    if (session.record.mode === 'carried') {
      const detail = 'the caller carries the history of this session itself, so the gateway holds none';
      throw new ApiProblem(fault('history_carried', detail));
    }
    return exportHistory(gateway, session);
  });
  return jsonAnswer(history);
}

/**
 * A session's history as it travels. Entries of held sessions are signed when they are first handed out; the tokens are
 * kept, so that a second export is the same bytes.
 */
async function exportHistory(gateway: Gateway, session: Session): Promise<History> {
  const { head } = session.record;
  // What another replica appended since the row was read is of the next export: its report stands in no row yet.
  const records = (await gateway.store.readEntries(session.record.sid)).filter(
    ({ step }) => step <= (head?.step ?? -1),
  );
  const signed: Operation[] = [];
  const entries = records.map((record): Entry => {
    const token = record.token ?? sign(gateway, record);
    if (record.token === undefined) {
      signed.push({ op: 'sign_entry', sid: session.record.sid, step: record.step, token });
    }
    const body: EntryBody = readBody(record);
    return { ...body, token, ...reportOf(record.frozenReport ?? session.record.headReport) };
  });
  if (signed.length > 0) await gateway.commit(signed);
  return { ...headerOf(session.record), entries };
}

function sign(gateway: Gateway, record: StepRecord): string {
  const link = decodeBase64url(record.link, 32);
  if (link === undefined) throw new Error(`the store holds a link of step ${record.step} that is not base64url`);
  return signLink(gateway.loaded.signing, link);
}

function reportOf(report: NonNullable<StepRecord['frozenReport']>): Pick<Entry, 'outcome' | 'result'> {
  const outcome = outcomeOf(report.outcome);
  if (outcome === undefined) return {};
  return report.result === undefined ? { outcome } : { outcome, result: report.result };
}
