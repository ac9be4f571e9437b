import type { JsonValue } from '../../receipts/json-value.ts';
import { renderJson } from '../http/problems.ts';
import { askGateway } from './gateway-client.ts';
import { listOf, objectOf, textOf, timeOf } from './json-members.ts';
import { print, printable, renderColumns } from './output.ts';

/** Prints the calls of a state, oldest first. Throws `CliFault`. */
export async function listOutcomes(options: {
  readonly url: string;
  readonly state: string;
  readonly json?: boolean;
}): Promise<void> {
  const answer = await askGateway(options.url, 'GET', `/v1/outcomes?state=${encodeURIComponent(options.state)}`);
  if (options.json === true) return print(`${renderJson(answer)}\n`);
  const rows = listOf(answer['outcomes']).map(rowOf);
  if (rows.length === 0) process.stderr.write(`no call is ${options.state}\n`);
  else await print(renderColumns([['id', 'tool', 'caller', 'session', 'step', 'run', 'made', 'why'], ...rows]));
}

/** Says what became of one. Throws `CliFault`. */
export async function settleOutcome(
  id: string,
  options: { readonly url: string; readonly outcome: string; readonly reason: string },
): Promise<void> {
  const { url, outcome, reason } = options;
  const answer = await askGateway(url, 'POST', `/v1/outcomes/${encodeURIComponent(id)}/settle`, { outcome, reason });
  await print(
    `${printable(`${textOf(answer['id'])}: ${textOf(answer['outcome'])} by ${textOf(answer['approver'])}`)}\n`,
  );
}

function rowOf(value: JsonValue): readonly string[] {
  const { id, tool, caller, session, step, run, created, why } = objectOf(value);
  return [
    textOf(id),
    textOf(tool),
    textOf(caller),
    textOf(session),
    textOf(step),
    textOf(run),
    timeOf(created),
    textOf(why),
  ].map(printable);
}
