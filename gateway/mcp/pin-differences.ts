import { canonicalize } from '../../receipts/canonical.ts';
import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import type { Pins } from './pin-book.ts';

/** How a tool differs from its pin. */
export interface PinDifference {
  readonly tool: string;
  readonly what: 'added' | 'gone' | 'changed';
  /** A few lines for people. */
  readonly text: string;
}

const MAX_SHOWN = 300;

/** What differs between two states of the pins, for the servers that were asked, in the order of the tools' names. */
export function renderDifferences(before: Pins, now: Pins, servers: ReadonlySet<string>): readonly PinDifference[] {
  const ids = [...new Set([...before.keys(), ...now.keys()])]
    .filter((id) => servers.has(id.slice(0, id.indexOf('/'))))
    .sort();
  return ids.flatMap((tool): readonly PinDifference[] => {
    const was = before.get(tool);
    const is = now.get(tool);
    if (was === undefined) return [{ tool, what: 'added', text: `+ ${tool}` }];
    if (is === undefined) return [{ tool, what: 'gone', text: `- ${tool}` }];
    if (was.digest === is.digest) return [];
    const lines = changesOf(was.definition, is.definition, '');
    return [{ tool, what: 'changed', text: [`~ ${tool}`, ...lines].join('\n') }];
  });
}

/** Where two definitions differ, down to single members. */
function changesOf(was: JsonObject, is: JsonObject, path: string): readonly string[] {
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])].sort();
  return names.flatMap((name) => {
    const at = `${path}/${name}`;
    const [old, new_] = [was[name], is[name]];
    if (old !== undefined && new_ !== undefined && canonicalize(old) === canonicalize(new_)) return [];
    if (isObject(old) && isObject(new_)) return changesOf(old, new_, at);
    return [
      ...(old === undefined ? [] : [`    - ${at}: ${shown(old)}`]),
      ...(new_ === undefined ? [] : [`    + ${at}: ${shown(new_)}`]),
    ];
  });
}

/** A value as canonical JSON in plain ASCII: what nobody would see is seen here. */
function shown(value: JsonValue): string {
  const text = canonicalize(value).replace(
    /[^\x20-\x7e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}… (${text.length} characters)` : text;
}
