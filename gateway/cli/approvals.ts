import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { renderJson } from '../http/problems.ts';
import { askGateway } from './gateway-client.ts';
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
  await print(`${printable(`${text(answer['id'])}: ${text(answer['state'])} by ${text(answer['approver'])}`)}\n`);
}

/** All that a person must see of a call, a line each: every argument with where it came from, and every reason to ask. */
function renderConfirmation(value: JsonValue): string {
  const held = objectOf(value);
  const shown = objectOf(held['shown']);
  const expires = Number(held['expires']);
  const lines = [
    `${text(held['id'])}  ${text(held['tool'])} by ${text(held['agent'])} (credential ${text(held['caller'])})`,
    `  session ${text(held['session'])}, step ${text(held['step'])}, until ${Number.isFinite(expires) ? new Date(expires).toISOString() : '?'}`,
    ...listOf(shown['arguments']).map((argument) => {
      const { name = null, value: given = null, origin = null } = objectOf(argument);
      return `  ${text(name)} = ${renderJson(given)}  (${text(origin)})`;
    }),
    `  asked because of ${listOf(shown['reasons']).map(text).join(', ')}`,
  ];
  return lines.map((line) => `${printable(line)}\n`).join('');
}

function text(value: JsonValue | undefined): string {
  return value === undefined || value === null ? '' : typeof value === 'string' ? value : renderJson(value);
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !isArray(value) ? value : {};
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return value !== undefined && isArray(value) ? value : [];
}

function isArray(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
