import { readFile } from 'node:fs/promises';
import { decodeBase64url } from '../../receipts/base64url.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import type { Crypto } from '../../receipts/crypto.ts';
import { parseJson } from '../../receipts/json.ts';
import { JsonFault } from '../../receipts/json-fault.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { Config } from '../config/config.ts';
import type { Problem } from '../config/problem.ts';
import { messageOf } from '../message-of.ts';

/** A licence that was verified: until when it holds, and what is refused after. */
export interface Licence {
  /** Milliseconds since 1970; from then on it has lapsed. */
  readonly endsMs: number;
  readonly refuses: 'writes' | 'all';
}

export interface LoadedLicence {
  readonly licence?: Licence;
  readonly problems: readonly Problem[];
}

const FORMAT = 'toolgate-licence/1';

/**
 * Reads and verifies the licence file of a config (docs/configuration.md, `licence`): a JSON object `{format, licensee,
 * tenant, not_after, signature}`, signed over `toolgate-licence/1`, a zero byte and the JCS of all other
 * members. A licence that cannot be verified is a fault of the config,
 * a lapsed one is not: what it refuses is row 1's to say.
 */
export async function loadLicence(crypto: Crypto, config: Config): Promise<LoadedLicence> {
  const { licence } = config;
  if (licence === undefined) return { problems: [] };
  const refuses = licence.lapsed === 'refuse' ? 'all' : 'writes';
  const fault = (message: string): LoadedLicence => ({ problems: [problemOf(config, message)] });
  if (licence.publicKey === undefined) {
    return fault('nothing says which key signs the licence; give `file` and `public_key`');
  }
  const value = await readLicence(licence.file);
  if (typeof value === 'string') return fault(value);
  const { signature, ...signed } = value;
  const bytes = typeof signature === 'string' ? decodeBase64url(signature, 64) : undefined;
  const message = new TextEncoder().encode(`${FORMAT}\0${canonicalize(signed)}`);
  if (bytes === undefined || !crypto.publicKey(licence.publicKey).verify(message, bytes)) {
    return fault('the licence is not signed by its `public_key`; fetch it again from whoever issued it');
  }
  const { not_after: endsMs, tenant } = signed;
  if (typeof endsMs !== 'number' || !Number.isSafeInteger(endsMs)) return fault('the licence has no `not_after`');
  if (tenant !== config.tenant) {
    return fault(`the licence is for another tenant than \`${config.tenant}\``);
  }
  return { licence: { endsMs, refuses }, problems: [] };
}

async function readLicence(file: string): Promise<JsonObject | string> {
  let value: JsonValue;
  try {
    value = parseJson(await readFile(file));
  } catch (error) {
    if (error instanceof JsonFault) return `the licence file is not JSON: ${error.message}`;
    return `the licence file cannot be read (${messageOf(error)})`;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'the licence is no JSON object';
  const object: JsonObject = value as JsonObject;
  return object['format'] === FORMAT ? object : `the licence has another \`format\` than \`${FORMAT}\``;
}

function problemOf(config: Config, message: string): Problem {
  return { severity: 'error', code: 'licence', message, ...config.positionOf(['licence']) };
}
