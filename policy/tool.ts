import type { JsonObject } from '../receipts/json-value.ts';
import type { CompiledSchema } from './schema/compile.ts';
import type { SchemaFault } from './schema/walk.ts';

/** One empty list for every call that fits. */
export const NO_FAULTS: readonly SchemaFault[] = [];

/** `after: [...]`: an earlier call of `tool` ran; `bind` ties arguments of this call to fields of its result. */
export interface AfterRule {
  readonly tool: string;
  /** Argument name → dotted field of that tool's result. */
  readonly bind?: Readonly<Record<string, string>>;
}

/** Where an undo's argument comes from. */
export interface UndoSource {
  readonly from: 'arguments' | 'result';
  /** Dotted path into the step's arguments or result. */
  readonly path: string;
}

/** `undo: {tool, with}` after loading: the undo tool as a pair and every argument that it binds. */
export interface UndoBinding {
  readonly tool: string;
  readonly with: Readonly<Record<string, UndoSource>>;
  /** The undo may be sent for a step whose outcome is unknown. */
  readonly safeIfNothingHappened: boolean;
}

/** How a backend takes the idempotency key of a write. */
export type IdempotencyCarrier = { readonly header: string } | { readonly argument: string };

/**
 * A tool of the catalogue: the operator's words about it, with every name resolved to a `server/tool` pair.
 * Words are those of docs/configuration.md; the meanings are those of docs/check.md.
 */
export interface Tool {
  /** The pair, `shop/get_order`. */
  readonly id: string;
  readonly server: string;
  readonly name: string;
  readonly description: string;
  readonly input: CompiledSchema<JsonObject>;
  /** Schema of the result; absent where nothing is declared about it. */
  readonly result?: CompiledSchema<JsonObject>;
  readonly writes: boolean;
  readonly irreversible: boolean;
  readonly idempotent: boolean;
  readonly idempotency?: IdempotencyCarrier;
  readonly sendsOut: boolean;
  readonly readsOutside: boolean;
  readonly subjectArguments: readonly string[];
  readonly confidential: boolean;
  /** 0 is `low`, 100 is `high`. */
  readonly privilege: number;
  /** Agents that reach the tool. */
  readonly agents: ReadonlySet<string>;
  /** `reasons` waives the bare `write` reason alone. */
  readonly confirm: 'always' | 'reasons';
  readonly after: readonly AfterRule[];
  /** Pairs, or `untrusted`. */
  readonly notAfter: readonly string[];
  /** `at_most: N` per session. */
  readonly atMost?: number;
  /** `none`: a failed run may leave the call done. Absent: nothing is said. */
  readonly undo?: UndoBinding | 'none';
  /** An undo by this tool gives back what the undone step spent. */
  readonly restores: boolean;
  readonly argumentKinds: Readonly<Record<string, 'filename' | 'version' | 'prose'>>;
  /** Argument values that the gateway fills in where the call gives none. */
  readonly defaults: JsonObject;
  /** Names of the result fields that rules, bindings, facts and undos read. */
  readonly watched: readonly string[];
  /** Where a definition that differs from its pin keeps the tool from being called. */
  readonly pin?: 'changed' | 'missing';
}

/** An agent of the config. */
export interface Agent {
  readonly name: string;
  /** 0 is `low`, 100 is `high`. */
  readonly privilege: number;
  readonly defaults: JsonObject;
}
