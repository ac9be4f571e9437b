import { randomBytes } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { parseJson } from '../../receipts/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { renderJson } from '../http/problems.ts';
import { messageOf } from '../message-of.ts';

/** What was pinned of a tool. */
export interface Pin {
  readonly digest: string;
  /** `operator`: by `toolgate pin`. `first_use`: in the first list of its server. `later`: in a later one. */
  readonly by: 'operator' | 'first_use' | 'later';
  readonly definition: JsonObject;
}

/** Pins by `server/tool` pair, as the file beside the configuration holds them. */
export type Pins = ReadonlyMap<string, Pin>;

const FORMAT = 'toolgate-pins/1';

/** A pin file that cannot be read as one: taken for an empty one, it would let any definition pass. */
class PinFault extends Error {
  readonly code = 'bad_pins';
}

/** The pin file of a configuration: beside it, `gateway.pins.json` for `gateway.yaml`. */
export function pinFileOf(configFile: string): string {
  return `${configFile.replace(/\.ya?ml$/i, '')}.pins.json`;
}

/** Reads a pin file; empty where there is none. Throws `PinFault` for one that is none. */
export async function readPins(file: string): Promise<Pins> {
  let text: Buffer;
  try {
    text = await readFile(file);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return new Map();
    throw error;
  }
  try {
    return parsePins(parseJson(text));
  } catch (error) {
    throw new PinFault(
      `the pin file \`${file}\` cannot be read: ${messageOf(error)}; make it anew with \`toolgate pin\``,
    );
  }
}

/** Writes a pin file as a whole or not at all. */
export async function writePins(file: string, pins: Pins): Promise<void> {
  const sorted = [...pins].sort(([a], [b]) => (a < b ? -1 : 1));
  const text = renderJson({ format: FORMAT, pins: Object.fromEntries(sorted.map(([id, pin]) => [id, { ...pin }])) });
  const other = `${file}.${randomBytes(4).toString('hex')}.tmp`;
  await writeFile(other, `${text}\n`, { mode: 0o644 });
  await rename(other, file);
}

/** Pins what is seen for the first time: what was pinned meanwhile, by whomever, stays. Resolves with all pins then. */
export type PinFirstUse = (added: Pins) => Promise<Pins>;

/** The one writer of a pin file: of two at once, one would write over what the other had just pinned. */
export function createPinWriter(file: string): PinFirstUse {
  let writing: Promise<unknown> = Promise.resolve();
  const pin: PinFirstUse = async (added) => {
    const known = await readPins(file);
    const pins = new Map([...added, ...known]);
    if (pins.size > known.size) await writePins(file, pins);
    return pins;
  };
  return (added) => {
    const turn = writing.then(() => pin(added));
    writing = turn.catch(() => undefined);
    return turn;
  };
}

function parsePins(value: JsonValue): Pins {
  if (!isObject(value) || value['format'] !== FORMAT || !isObject(value['pins']))
    throw new TypeError(`it is no ${FORMAT}`);
  const pins = new Map<string, Pin>();
  for (const [id, pin] of Object.entries(value['pins'])) {
    const { digest, by, definition } = isObject(pin) ? pin : {};
    const isBy = by === 'operator' || by === 'first_use' || by === 'later';
    if (typeof digest !== 'string' || !isBy || !isObject(definition))
      throw new TypeError(`the pin of \`${id}\` is none`);
    pins.set(id, { digest, by, definition });
  }
  return pins;
}
