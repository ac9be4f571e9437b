import { pathFault } from '../../policy/conditions/literals.ts';
import type { CompiledSchema } from '../../policy/schema/compile.ts';
import type { Dialect } from '../../policy/schema/dialect.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { objectOf } from '../../receipts/json-value.ts';
import type { RouteConfig } from '../config/config.ts';
import type { ConfigPath, ProblemLog } from '../config/problem.ts';
import { suggest } from '../config/suggest.ts';
import type { NameTable, ResultField } from './names.ts';
import type { DocumentedOperation } from './runtime-route.ts';
import type { ToolSource } from './tool-source.ts';
import type { ToolWords } from './words.ts';

/** Compiles a JSON Schema; in `dialect` where the schema names none itself. */
export type CompileSchema = (
  schema: JsonObject,
  options?: { readonly dialect?: Dialect },
) => CompiledSchema<JsonObject>;

/** A tool while the catalogue is being made: its own words read, names of others not yet resolved. */
export interface ToolDraft {
  readonly id: string;
  readonly route: RouteConfig;
  readonly source: ToolSource;
  readonly words: ToolWords;
  readonly input: CompiledSchema<JsonObject>;
  /** The operation of a document. */
  readonly api?: DocumentedOperation;
  readonly result: CompiledSchema<JsonObject> | undefined;
  readonly writes: boolean;
  readonly readsOutside: boolean;
  readonly agents: ReadonlySet<string>;
  /** Result fields that something in the configuration reads. */
  readonly watched: Set<string>;
}

/** All drafts and what names mean among them. */
export interface Drafts {
  readonly byId: ReadonlyMap<string, ToolDraft>;
  readonly names: NameTable;
  readonly log: ProblemLog;
}

/** The tool that a name means, said on `own`; undefined, and a fault told, where it means none. */
export function resolveTool(
  drafts: Drafts,
  text: string,
  own: string | undefined,
  path: ConfigPath,
): string | undefined {
  const resolved = drafts.names.resolve(text, own);
  if ('id' in resolved) return resolved.id;
  drafts.log.error(resolved.code, path, resolved.message);
  return undefined;
}

/** The result field that `tool.field` means, marked as watched; undefined, and a fault told, where it means none. */
export function resolveResultField(
  drafts: Drafts,
  text: string,
  own: string | undefined,
  path: ConfigPath,
): ResultField | undefined {
  const resolved = drafts.names.resolveField(text, own);
  if ('code' in resolved) {
    drafts.log.error(resolved.code, path, resolved.message);
    return undefined;
  }
  const draft = drafts.byId.get(resolved.tool);
  if (draft !== undefined) watchField(drafts, draft, resolved.field, path);
  return resolved;
}

/** Marks a field of a tool's result as read by something, and tells where the result does not declare it. */
export function watchField(drafts: Drafts, draft: ToolDraft, field: string, path: ConfigPath): void {
  const plain = beforeList(field);
  draft.watched.add(plain);
  if (draft.result === undefined) {
    drafts.log.warning(
      'result_not_declared',
      path,
      `nothing is declared about the result of \`${draft.id}\`, so nobody can tell whether it has \`${field}\`; give the tool a \`result\` schema`,
    );
  } else if (!draft.result.declares(plain)) {
    drafts.log.error(
      'unknown_field',
      path,
      `the result of \`${draft.id}\` declares no \`${field}\`${suggest(plain, draft.result.topLevel)}`,
    );
  }
}

/** Tells where a tool has no argument at a path. */
export function checkArgument(
  drafts: Drafts,
  draft: ToolDraft,
  field: string,
  path: ConfigPath,
  part: 'key' | 'value' = 'value',
): boolean {
  if (draft.input.declares(beforeList(field))) return true;
  drafts.log.error(
    'unknown_argument',
    path,
    `\`${draft.id}\` declares no argument \`${field}\`${suggest(field, draft.input.topLevel)}`,
    part,
  );
  return false;
}

/** Tells a path that is none; true where it is one. */
export function checkPath(drafts: Drafts, text: string, path: ConfigPath): boolean {
  const fault = pathFault(text);
  if (fault !== undefined) drafts.log.error('condition_form', path, fault);
  return fault === undefined;
}

/** Names of the arguments that a call cannot leave out. */
export function requiredOf(draft: ToolDraft): readonly string[] {
  return draft.input.required;
}

/** Whether an argument may be left out. */
export function isOptional(draft: ToolDraft, name: string): boolean {
  return !requiredOf(draft).includes(name) && !Object.hasOwn(draft.words.said.defaults ?? {}, name);
}

/** A schema without one top-level member: the argument that the gateway writes is none of the caller's. */
export function withoutArgument(schema: JsonObject, name: string): JsonObject {
  const properties = Object.entries(objectOf(schema['properties'])).filter(([key]) => key !== name);
  const required = Array.isArray(schema['required']) ? (schema['required'] as readonly JsonValue[]) : undefined;
  return {
    ...schema,
    properties: Object.fromEntries(properties),
    ...(required === undefined ? {} : { required: required.filter((key) => key !== name) }),
  };
}

/** A path up to its first list: what is inside a list is kept with the list. */
function beforeList(field: string): string {
  const list = field.indexOf('[]');
  return list < 0 ? field : field.slice(0, list);
}
