import { type FactLiteral, FactSourceError, parseFactSource } from '../../policy/facts.ts';
import type { Config } from '../config/config.ts';
import { type Drafts, resolveResultField, watchField } from './tool-draft.ts';

/** A fact after loading: which field of which tool's result makes it, and how. */
export interface Fact {
  readonly name: string;
  readonly tool: string;
  /** Dotted path into the result. */
  readonly field: string;
  /** True where the field equals this; absent: where it is true, not 0 and not empty. */
  readonly equals?: FactLiteral;
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
    const comparison = readComparison(from, drafts, path);
    if (comparison === undefined) continue;
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
      ...comparison,
      ...(same === undefined ? {} : { same }),
    });
  }
  return facts;
}

/** What follows the tool and its field; undefined, and told, where it cannot be read. */
function readComparison(
  from: string,
  drafts: Drafts,
  path: readonly string[],
): { readonly equals?: FactLiteral } | undefined {
  try {
    const { equals } = parseFactSource(from);
    return equals === undefined ? {} : { equals };
  } catch (error) {
    if (!(error instanceof FactSourceError)) throw error;
    drafts.log.error(error.code, path, error.message);
    return undefined;
  }
}
