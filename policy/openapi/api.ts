import type { JsonObject } from '../../receipts/json-value.ts';
import type { CompiledSchema } from '../schema/compile.ts';
import type { Operation } from './operation.ts';

/** One operation of a document as a tool. Schemas are read and compiled when first asked. */
export interface ApiOperation extends Operation {
  readonly description: string;
  readonly tags: readonly string[];
  /** Whether it changes anything, by its method: GET and HEAD do not. The operator's words may say otherwise. */
  readonly writes: boolean;
  /** A path parameter is written `;name=value`. Known without reading a schema. */
  readonly hasMatrix: boolean;
  /** Schema of the arguments. */
  readonly input: CompiledSchema<JsonObject>;
  /** Schema of what a successful call answers, where the document declares JSON. */
  readonly result: CompiledSchema<JsonObject> | undefined;
  /** Why the arguments cannot be checked in full; empty where they can. */
  readonly partial: readonly string[];
  /**
   * The same operation where somebody else than the caller writes one of its arguments: it does not declare it. An argument
   * that stands inside a composed body cannot be taken out, and is still declared.
   */
  without(argument: string): ApiOperation;
}

/** An operation of the document that is no tool, and why. */
export interface RefusedOperation {
  readonly name: string;
  readonly method: string;
  readonly pathTemplate: string;
  readonly reason: string;
}

/** Which operations become tools, and under which names. */
export interface ApiSelection {
  /**
   * Patterns of what is taken; all where absent. `tag:orders`, `GET /orders/*` (a glob over method and path) or a glob
   * over the tool's name (`orders_*`); `*` stands for any text.
   */
  readonly include?: readonly string[];
  /** Patterns of what is left out after that. */
  readonly exclude?: readonly string[];
  /** New names by `operationId` or tool name. */
  readonly rename?: Readonly<Record<string, string>>;
  /** Headers, in lower case, that are no arguments because the gateway writes them itself. */
  readonly withoutHeaders?: ReadonlySet<string>;
}

/** What a document offers. */
export interface Api {
  readonly version: '2.0' | '3.0' | '3.1' | '3.2';
  readonly title: string;
  /** Path that every operation's path stands below at the backend, without trailing slash; empty for none. */
  readonly basePath: string;
  readonly operations: readonly ApiOperation[];
  readonly refused: readonly RefusedOperation[];
  /** Patterns and names of the selection that fit nothing in the document. */
  readonly unmet: readonly string[];
}

/** Thrown for a document that cannot be loaded; the message says what is wrong and where. */
export class ApiError extends Error {
  readonly code: ApiErrorCode;
  constructor(code: ApiErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** `api_unpinned` and `api_changed`: a document whose digest is not known, or another than is known. */
export type ApiErrorCode = 'api_invalid' | 'api_clash' | 'api_unpinned' | 'api_changed';
