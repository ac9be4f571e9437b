import { parseJson } from '../../receipts/json.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import { objectOf } from '../../receipts/json-value.ts';
import { CliFault } from './command.ts';

/** How long a gateway may take to answer. */
const TIMEOUT_MS = 30_000;

/**
 * Asks a running gateway with the approver's key of the environment. Throws `CliFault`: 1 where it says no, 2 where it
 * cannot be asked.
 */
export async function askGateway(
  url: string,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
): Promise<JsonObject> {
  const key = process.env['TOOLGATE_APPROVER_KEY'];
  if (key === undefined || key === '') {
    throw new CliFault(2, "put an approver's key into the environment variable TOOLGATE_APPROVER_KEY");
  }
  const { status, value } = await send(url, key, method, path, body);
  if (status === 200) return value;
  const detail = typeof value['detail'] === 'string' ? value['detail'] : `it answered ${status}`;
  throw new CliFault(status === 404 || status === 409 ? 1 : 2, `the gateway at \`${url}\` says: ${detail}`);
}

async function send(
  url: string,
  key: string,
  method: 'GET' | 'POST',
  path: string,
  body: object | undefined,
): Promise<{ readonly status: number; readonly value: JsonObject }> {
  if (!URL.canParse(url)) throw new CliFault(2, `\`${url}\` is no address; say \`http://127.0.0.1:8080\``);
  try {
    const response = await fetch(new URL(path, url), {
      method,
      // A key is sent to the address that was named, and to no other that it points to.
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, value: objectOf(parseJson(await response.text())) };
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    throw new CliFault(
      2,
      `there is no answer of a gateway at \`${url}\`: ${cause instanceof Error ? cause.message : String(cause)}`,
    );
  }
}
