import type { AfterRule, IdempotencyCarrier, Tool, UndoBinding } from '../../policy/tool.ts';
import { privilegeOf } from '../config/read-agents.ts';
import { checkArgument, type Drafts, type ToolDraft } from './tool-draft.ts';

/** What of a tool was resolved among all tools. */
export interface Bound {
  readonly after: readonly AfterRule[];
  readonly notAfter: readonly string[];
  readonly undo: UndoBinding | 'none' | undefined;
}

/** Words that say something of writes alone. */
const WRITE_WORDS = ['irreversible', 'idempotency', 'confirm', 'restores', 'safe_if_nothing_happened'] as const;

/** Headers that a key cannot travel in. */
const NO_KEY_HEADER: ReadonlySet<string> = new Set([
  'authorization',
  'host',
  'cookie',
  'connection',
  'content-length',
  'content-type',
  'transfer-encoding',
]);

/** The tool as the check reads it. Faults: argument words about arguments that are not there, words that cannot go together. */
export function finishTool(drafts: Drafts, draft: ToolDraft, bound: Bound): Tool {
  const { said, pathOf } = draft.words;
  const { log } = drafts;
  const subjects = said.subject_argument === undefined ? [] : [said.subject_argument].flat();
  for (const name of subjects) checkArgument(drafts, draft, name, pathOf('subject_argument'));
  for (const name of Object.keys(said.arguments ?? {}))
    checkArgument(drafts, draft, name, [...pathOf('arguments'), name], 'key');
  checkDefaults(drafts, draft);
  const idempotency = readCarrier(drafts, draft);
  if (!draft.writes) {
    for (const word of WRITE_WORDS) {
      if (said[word] === undefined || !draft.words.isExact(word)) continue;
      log.warning(
        'word_without_effect',
        pathOf(word),
        `\`${draft.id}\` only reads: \`${word}\` says nothing of it`,
        'key',
      );
    }
  } else if (idempotency === undefined && said.idempotent !== true) {
    log.warning(
      'no_idempotency',
      draft.source.path,
      `the backend of \`${draft.id}\` is not known to take an idempotency key: a call whose outcome is unknown waits for a person; say \`idempotency\` or \`idempotent\``,
    );
  }
  return {
    id: draft.id,
    server: draft.route.name,
    name: draft.source.name,
    description: said.description ?? draft.source.description ?? '',
    input: draft.input,
    ...(draft.result === undefined ? {} : { result: draft.result }),
    writes: draft.writes,
    irreversible: said.irreversible ?? false,
    idempotent: said.idempotent ?? false,
    ...(idempotency === undefined ? {} : { idempotency }),
    sendsOut: said.sends_out ?? draft.source.sendsOut ?? false,
    readsOutside: draft.readsOutside,
    subjectArguments: subjects,
    confidential: said.confidential ?? false,
    privilege: privilegeOf(said.privilege),
    agents: draft.agents,
    confirm: said.confirm ?? 'always',
    after: bound.after,
    notAfter: bound.notAfter,
    ...(typeof said.at_most === 'number' ? { atMost: said.at_most } : {}),
    ...(bound.undo === undefined ? {} : { undo: bound.undo }),
    restores: said.restores ?? false,
    argumentKinds: said.arguments ?? {},
    defaults: said.defaults ?? {},
    watched: [...draft.watched].sort(),
    ...(draft.source.pin === undefined ? {} : { pin: draft.source.pin }),
  };
}

/** Tells words on a tool that say what it is as an undo, where it is none. */
export function checkUndoWords(drafts: Drafts, draft: ToolDraft, undos: ReadonlySet<string>): void {
  for (const word of ['restores', 'safe_if_nothing_happened'] as const) {
    if (draft.words.said[word] !== true || undos.has(draft.id) || !draft.words.isExact(word)) continue;
    drafts.log.warning(
      'word_without_effect',
      draft.words.pathOf(word),
      `\`${draft.id}\` is no tool’s \`undo\`: \`${word}\` belongs to the tool that undoes`,
      'key',
    );
  }
}

function checkDefaults(drafts: Drafts, draft: ToolDraft): void {
  const defaults = draft.words.said.defaults;
  if (defaults === undefined) return;
  const path = draft.words.pathOf('defaults');
  const known = Object.keys(defaults).filter((name) => checkArgument(drafts, draft, name, [...path, name], 'key'));
  // Alone they lack what the call brings; only what is wrong with the defaults themselves is a fault.
  for (const fault of draft.input.validate(defaults)) {
    const name = known.find((key) => fault.pointer === `/${key}` || fault.pointer.startsWith(`/${key}/`));
    if (name === undefined || !Object.hasOwn(defaults, name)) continue;
    drafts.log.error(
      'bad_default',
      [...path, name],
      `the default of \`${name}\` does not fit its schema: ${fault.message}`,
    );
  }
}

function readCarrier(drafts: Drafts, draft: ToolDraft): IdempotencyCarrier | undefined {
  const { said, pathOf } = draft.words;
  if (typeof said.idempotency !== 'object') return undefined;
  const { header, argument } = said.idempotency;
  const path = pathOf('idempotency');
  if (header !== undefined && argument !== undefined) {
    drafts.log.error('idempotency_form', path, 'a key travels in a `header` or in an `argument`, not in both');
  }
  if (argument !== undefined) {
    if (draft.input.declares(argument)) {
      drafts.log.error(
        'idempotency_form',
        [...path, 'argument'],
        `\`${argument}\` is declared in a part of the input of \`${draft.id}\` that it cannot be taken out of; declare it at the top level`,
      );
    }
    if (draft.source.operation?.pathParameters.includes(argument) === true) {
      drafts.log.error(
        'idempotency_form',
        [...path, 'argument'],
        `\`${argument}\` stands in the path; a key cannot travel there`,
      );
    }
    return { argument };
  }
  if (header === undefined) return undefined;
  if (NO_KEY_HEADER.has(header.toLowerCase()) || header.toLowerCase().startsWith('toolgate-')) {
    drafts.log.error('reserved_header', [...path, 'header'], `\`${header}\` cannot carry a key`);
  }
  return { header };
}
