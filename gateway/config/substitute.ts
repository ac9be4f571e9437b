import type { JsonValue } from '../../receipts/json-value.ts';
import type { ConfigPath, ProblemLog } from './problem.ts';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** JSON Schemas are taken as they stand: a `pattern` may well hold `${`. */
const LITERAL: ReadonlySet<string> = new Set(['input', 'result']);

/**
 * Replaces `${NAME}` in every text by the environment's value; `$${` stands for `${` itself. A variable that is not set
 * is a fault that names it. Returns the configuration with the values in place.
 */
export function substituteEnvironment(value: JsonValue, env: Environment, log: ProblemLog): JsonValue {
  const walk = (node: JsonValue, path: ConfigPath): JsonValue => {
    if (typeof node === 'string') return node.includes('${') ? substitute(node, path) : node;
    if (Array.isArray(node)) return node.map((item, index) => walk(item, [...path, index]));
    if (node === null || typeof node !== 'object') return node;
    return Object.fromEntries(
      Object.entries(node).map(([key, member]) => [
        key,
        LITERAL.has(key) && path[0] === 'routes' ? member : walk(member, [...path, key]),
      ]),
    );
  };
  const substitute = (text: string, path: ConfigPath): string => {
    let out = '';
    let from = 0;
    for (;;) {
      const start = text.indexOf('${', from);
      if (start < 0) return out + text.slice(from);
      if (text[start - 1] === '$' && start > from) {
        out += `${text.slice(from, start - 1)}\${`;
        from = start + 2;
        continue;
      }
      const end = text.indexOf('}', start);
      const name = end < 0 ? '' : text.slice(start + 2, end);
      if (!NAME.test(name)) {
        log.error('wrong_variable', path, `a variable is written \`\${NAME}\`; a literal \`\${\` is written \`$\${\``);
        return text;
      }
      const found = Object.hasOwn(env, name) ? env[name] : undefined;
      if (found === undefined) {
        log.error('missing_variable', path, `the environment variable \`${name}\` is not set`);
      }
      out += text.slice(from, start) + (found ?? '');
      from = end + 1;
    }
  };
  return walk(value, []);
}
