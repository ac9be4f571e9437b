import { suggest } from '../config/suggest.ts';

/** What a tool's name in the configuration comes to: a pair, or why it is none. */
export type Resolved =
  | { readonly id: string }
  | { readonly code: 'unknown_tool_name' | 'ambiguous_tool_name'; readonly message: string };

/** A field of a tool's result, `get_order.status` after loading. */
export interface ResultField {
  readonly tool: string;
  /** Dotted path; `[]` behind a name stands for each of a list. */
  readonly field: string;
}

/**
 * The names of all tools when the configuration was loaded. A bare name is resolved once, here: the own route's tool,
 * else the one server that offers it. What a server lists later changes no name.
 */
export class NameTable {
  readonly #ids: ReadonlySet<string>;
  readonly #byName = new Map<string, string[]>();
  readonly #open: ReadonlySet<string>;

  /** `open` are the servers that may list further tools while running. */
  constructor(tools: Iterable<{ readonly id: string; readonly name: string }>, open: ReadonlySet<string>) {
    const ids = new Set<string>();
    for (const { id, name } of tools) {
      ids.add(id);
      this.#byName.set(name, [...(this.#byName.get(name) ?? []), id]);
    }
    this.#ids = ids;
    this.#open = open;
  }

  /** The pair of a name said on route `own` (none: at the top level). */
  resolve(text: string, own?: string): Resolved {
    if (text.includes('/')) {
      const server = text.slice(0, text.indexOf('/'));
      if (this.#ids.has(text) || this.#open.has(server)) return { id: text };
      return {
        code: 'unknown_tool_name',
        message: `there is no tool \`${text}\`${suggest(text, [...this.#ids].slice(0, 50))}`,
      };
    }
    if (own !== undefined && (this.#ids.has(`${own}/${text}`) || this.#open.has(own))) return { id: `${own}/${text}` };
    const offered = this.#byName.get(text) ?? [];
    const [only, ...others] = offered;
    if (only === undefined) {
      return {
        code: 'unknown_tool_name',
        message: `there is no tool \`${text}\`${suggest(text, [...this.#byName.keys()].slice(0, 50))}`,
      };
    }
    if (others.length === 0) return { id: only };
    const pairs = offered.map((id) => `\`${id}\``).join(' or ');
    return { code: 'ambiguous_tool_name', message: `several servers offer \`${text}\`; write ${pairs}` };
  }

  /** The tool and field of `tool.field`. Names of tools may hold dots: the longest that is a tool counts. */
  resolveField(text: string, own?: string): ResultField | Exclude<Resolved, { id: string }> {
    let first: Exclude<Resolved, { id: string }> | undefined;
    let found: ResultField | undefined;
    const from = text.indexOf('/') + 1;
    for (let dot = text.indexOf('.', from); dot > 0 && dot < text.length - 1; dot = text.indexOf('.', dot + 1)) {
      const resolved = this.resolve(text.slice(0, dot), own);
      if ('id' in resolved) {
        if (found === undefined || this.#ids.has(resolved.id))
          found = { tool: resolved.id, field: text.slice(dot + 1) };
      } else first ??= resolved;
    }
    return found ?? first ?? { code: 'unknown_tool_name', message: `\`${text}\` is not written \`tool.field\`` };
  }
}
