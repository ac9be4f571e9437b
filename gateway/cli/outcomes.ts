import type { JsonValue } from '../../receipts/json-value.ts';
import { objectOf } from '../../receipts/json-value.ts';
import { renderJson } from '../http/problems.ts';
import { CliFault } from './command.ts';
import { askGateway } from './gateway-client.ts';
import { listOf, textOf, timeOf } from './json-members.ts';
import { print, printable, renderColumns } from './output.ts';

/** Prints the calls whose outcome is unknown. Throws `CliFault`. */
export async function listOutcomes(options: { readonly url: string; readonly json?: boolean }): Promise<void> {
  const answer = await askGateway(options.url, 'GET', '/v1/outcomes?state=outcome_unknown');
  if (options.json === true) return print(`${renderJson(answer)}\n`);
  const rows = listOf(answer['outcomes']).map(rowOf);
  if (rows.length === 0) process.stderr.write('no outcome is unknown\n');
  else await print(renderColumns([['id', 'made', 'tool', 'agent', 'caller', 'session', 'why'], ...rows]));
}

function rowOf(value: JsonValue): readonly string[] {
  const { id, created, tool, agent, caller, session, step, why } = objectOf(value);
  const place = `${textOf(session)}#${textOf(step)}`;
  return [textOf(id), timeOf(created), textOf(tool), textOf(agent), textOf(caller), place, textOf(why)].map(printable);
}

/** Settles one call. Throws `CliFault`. */
export async function settleOutcome(
  id: string,
  outcome: string,
  options: { readonly url: string; readonly reason: string },
): Promise<void> {
  if (outcome !== 'ran' && outcome !== 'failed')
    throw new CliFault(2, `\`${outcome}\` is no outcome; say ran or failed`);
  const { url, reason } = options;
  const answer = await askGateway(url, 'POST', `/v1/outcomes/${encodeURIComponent(id)}/settle`, { outcome, reason });
  await print(
    `${printable(`${textOf(answer['id'])}: ${textOf(answer['outcome'])}, says ${textOf(answer['approver'])}`)}\n`,
  );
}
