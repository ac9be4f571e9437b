import type { JsonValue } from '../../receipts/json-value.ts';
import type { Config } from '../config/config.ts';
import { type Drafts, resolveResultField, watchField } from './tool-draft.ts';

/** A fact after loading: which field of which tool's result makes it, and how. */
export interface Fact {
  readonly name: string;
  readonly tool: string;
  /** Dotted path into the result. */
  readonly field: string;
  /** True where the field equals this; absent: where it is true, not 0 and not empty. */
  readonly equals?: JsonValue;
  /** Counts only an answer whose argument (else result field) of this name equals the call's argument. */
  readonly same?: string;
}

/** The facts of the configuration, names resolved. Faults: tools and fields that are not there, tools that read outside. */
export function readFacts(config: Config, drafts: Drafts): ReadonlyMap<string, Fact> {
  const facts = new Map<string, Fact>();
  for (const [name, { from, same }] of Object.entries(config.facts)) {
    const path = ['facts', name, 'from'];
    const sign = from.indexOf('==');
    const place = (sign < 0 ? from : from.slice(0, sign)).trim();
    const found = resolveResultField(drafts, place, undefined, path);
    if (found === undefined) continue;
    const draft = drafts.byId.get(found.tool);
    if (draft?.readsOutside) {
      drafts.log.error(
        'fact_from_outside',
        path,
        `\`${found.tool}\` reads outside: what strangers wrote makes no fact`,
      );
    }
    if (found.field.includes('[]'))
      drafts.log.error('fact_of_list', path, `\`${found.field}\` is many values; a fact is made of one`);
    if (same !== undefined && draft !== undefined && !draft.input.topLevel.includes(same)) {
      watchField(drafts, draft, same, ['facts', name, 'same']);
    }
    if (same === undefined) {
      drafts.log.warning(
        'fact_without_same',
        path,
        `\`${name}\` counts for every call once \`${found.tool}\` said so, whatever it was about; tie it with \`same\``,
      );
    }
    facts.set(name, {
      name,
      tool: found.tool,
      field: found.field,
      ...(sign < 0 ? {} : { equals: literalOf(from.slice(sign + 2).trim()) }),
      ...(same === undefined ? {} : { same }),
    });
  }
  return facts;
}

/** A literal: in quotes a text, `true`, `false` and numbers as themselves, anything else a text as it stands. */
function literalOf(text: string): JsonValue {
  const quoted = /^"([^"]*)"$|^'([^']*)'$/.exec(text);
  if (quoted !== null) return quoted[1] ?? quoted[2] ?? '';
  if (text === 'true' || text === 'false') return text === 'true';
  if (!/^-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?$/.test(text)) return text;
  const number = Number(text);
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? BigInt(text) : number;
}
