import type { JsonValue } from '../../receipts/json-value.ts';
import { objectOf } from '../../receipts/json-value.ts';
import { renderJson } from '../http/problems.ts';
import { askGateway } from './gateway-client.ts';
import { listOf, textOf, timeOf } from './json-members.ts';
import { print, printable } from './output.ts';

/** Prints the confirmations of a state. Throws `CliFault`. */
export async function listApprovals(options: {
  readonly url: string;
  readonly state: string;
  readonly json?: boolean;
}): Promise<void> {
  const answer = await askGateway(options.url, 'GET', `/v1/confirmations?state=${encodeURIComponent(options.state)}`);
  if (options.json === true) return print(`${renderJson(answer)}\n`);
  const found = listOf(answer['confirmations']);
  if (found.length === 0) process.stderr.write(`nothing is ${options.state}\n`);
  await print(found.map(renderConfirmation).join('\n'));
}

/** Approves or denies one. Throws `CliFault`. */
export async function decideApproval(
  id: string,
  act: 'approve' | 'deny',
  options: { readonly url: string; readonly note?: string },
): Promise<void> {
  const { note } = options;
  const path = `/v1/confirmations/${encodeURIComponent(id)}/${act}`;
  const answer = await askGateway(options.url, 'POST', path, note === undefined ? undefined : { note });
  await print(`${printable(`${textOf(answer['id'])}: ${textOf(answer['state'])} by ${textOf(answer['approver'])}`)}\n`);
}

/** All that a person must see of a call, a line each: every argument with where it came from, and every reason to ask. */
function renderConfirmation(value: JsonValue): string {
  const held = objectOf(value);
  const shown = objectOf(held['shown']);
  const lines = [
    `${textOf(held['id'])}  ${textOf(held['tool'])} by ${textOf(held['agent'])} (credential ${textOf(held['caller'])})`,
    `  session ${textOf(held['session'])}, step ${textOf(held['step'])}, until ${timeOf(held['expires'])}`,
    ...listOf(shown['arguments']).map((argument) => {
      const { name = null, value: given = null, origin = null } = objectOf(argument);
      return `  ${textOf(name)} = ${renderJson(given)}  (${textOf(origin)})`;
    }),
    `  asked because of ${listOf(shown['reasons']).map(textOf).join(', ')}`,
  ];
  return lines.map((line) => `${printable(line)}\n`).join('');
}
