import type { ProblemLog } from '../config/problem.ts';
import type { DocumentedOperation } from './runtime-route.ts';
import type { ToolSource } from './tool-source.ts';
import type { ToolWords } from './words.ts';

/**
 * An operation of a document with the carrier of its key taken out of what callers declare: the gateway alone writes it.
 * Undefined for tools of other kinds. Faults: a carrier that the document does not know.
 */
export function documented(source: ToolSource, words: ToolWords, log: ProblemLog): DocumentedOperation | undefined {
  const whole = source.operation?.api;
  if (whole === undefined) return undefined;
  const said = words.said.idempotency;
  if (typeof said !== 'object') return { declared: whole, whole };
  const { header, argument } = said;
  if (argument !== undefined) {
    if (!whole.input.topLevel.includes(argument)) {
      log.error(
        'idempotency_form',
        [...words.pathOf('idempotency'), 'argument'],
        `the document declares no argument \`${argument}\` of \`${source.name}\`: nothing would carry the key`,
      );
    }
    return { declared: whole.without(argument), whole };
  }
  const lower = header?.toLowerCase();
  const own = whole.parameters.find(({ place, name }) => place === 'header' && name.toLowerCase() === lower);
  return { declared: own === undefined ? whole : whole.without(own.argument), whole };
}
