import type { JsonValue } from '../../receipts/json-value.ts';
import { objectOf } from '../../receipts/json-value.ts';
import { renderJson } from '../http/problems.ts';
import { askGateway } from './gateway-client.ts';
import { listOf, textOf, timeOf } from './json-members.ts';
import { print, printable, renderColumns } from './output.ts';

/** Prints what is used of every limit. Throws `CliFault`. */
export async function showUsage(options: { readonly url: string; readonly json?: boolean }): Promise<void> {
  const answer = await askGateway(options.url, 'GET', '/v1/usage');
  if (options.json === true) return print(`${renderJson(answer)}\n`);
  const rows = listOf(answer['usage']).map(rowOf);
  if (rows.length === 0) process.stderr.write('no tool has a limit per time\n');
  else await print(renderColumns([['what', 'per', 'at most', 'used', 'held', 'until', 'tools'], ...rows]));
}

function rowOf(value: JsonValue): readonly string[] {
  const { kind = null, pool, field, currency, per = null, at_most, settled, held, until, tools } = objectOf(value);
  const what = [textOf(kind), textOf(pool ?? field), textOf(currency)].filter((word) => word !== '').join(' ');
  const counts = [textOf(at_most), textOf(settled), textOf(held), timeOf(until)];
  return [what, textOf(per), ...counts, listOf(tools).map(textOf).join(' ')].map(printable);
}
