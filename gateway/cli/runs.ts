import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { objectOf } from '../../receipts/json-value.ts';
import { renderJson } from '../http/problems.ts';
import { askGateway } from './gateway-client.ts';
import { listOf, textOf, timeOf } from './json-members.ts';
import { print, printable, renderColumns } from './output.ts';

/** Where a gateway is, and whose run is meant. */
export interface RunOptions {
  readonly url: string;
  readonly caller: string;
  readonly json?: boolean;
}

/** Prints the runs of a state. Throws `CliFault`. */
export async function listRuns(options: {
  readonly url: string;
  readonly state: string;
  readonly json?: boolean;
}): Promise<void> {
  const answer = await askGateway(options.url, 'GET', `/v1/runs?state=${encodeURIComponent(options.state)}`);
  if (options.json === true) return print(`${renderJson(answer)}\n`);
  const rows = listOf(answer['runs']).map((value) => {
    const { run, caller, agent, state, updated, why } = objectOf(value);
    return [textOf(run), textOf(caller), textOf(agent), textOf(state), timeOf(updated), textOf(why)].map(printable);
  });
  if (rows.length === 0) process.stderr.write(`no run is ${options.state}\n`);
  else await print(renderColumns([['run', 'caller', 'agent', 'state', 'changed', 'why'], ...rows]));
}

/** Prints how a run stands. Throws `CliFault`. */
export async function showRun(id: string, options: RunOptions): Promise<void> {
  const caller = encodeURIComponent(options.caller);
  await show(await askGateway(options.url, 'GET', `/v1/runs/${encodeURIComponent(id)}?caller=${caller}`), options);
}

/** Undoes or ends a run, and prints how it stands then. Throws `CliFault`. */
export async function moveRun(id: string, act: 'undo' | 'end', options: RunOptions): Promise<void> {
  const { url, caller } = options;
  await show(await askGateway(url, 'POST', `/v1/runs/${encodeURIComponent(id)}/${act}`, { caller }), options);
}

/** Says what becomes of an undo that needs a person. Throws `CliFault`. */
export async function settleUndo(
  id: string,
  options: RunOptions & { readonly step: string; readonly as: string; readonly reason: string },
): Promise<void> {
  const { url, caller, as, reason } = options;
  const body = { caller, step: Number(options.step), as, reason };
  await show(await askGateway(url, 'POST', `/v1/runs/${encodeURIComponent(id)}/settle`, body), options);
}

async function show(run: JsonObject, options: RunOptions): Promise<void> {
  if (options.json === true) return print(`${renderJson(run)}\n`);
  const why = textOf(run['why']);
  const head = `${textOf(run['run'])}: ${textOf(run['state'])}${why === '' ? '' : ` (${why})`}`;
  const left = listOf(run['left']).map((value) => objectOf(value));
  await print(
    [
      `${printable(head)}\n`,
      renderColumns([['step', 'tool', 'outcome', 'undo', ''], ...listOf(run['steps']).map((step) => rowOf(step, run))]),
      ...left.map(
        ({ step, tool, why: stays }) =>
          `${printable(`stays: step ${textOf(step)}, ${textOf(tool)}: ${textOf(stays)}`)}\n`,
      ),
    ].join(''),
  );
}

function rowOf(value: JsonValue, run: JsonObject): readonly string[] {
  const { step, tool, outcome, undoes } = objectOf(value);
  const undo = listOf(run['undos'])
    .map((row) => objectOf(row))
    .find((row) => row['step'] === step);
  const what = undoes === undefined ? textOf(undo?.['state']) : `undoes step ${textOf(undoes)}`;
  return [textOf(step), textOf(tool), textOf(outcome), what, textOf(undo?.['why'])].map(printable);
}
