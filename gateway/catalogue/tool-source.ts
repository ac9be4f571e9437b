import type { Api, ApiOperation } from '../../policy/openapi/api.ts';
import type { Dialect } from '../../policy/schema/dialect.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { Config, RouteConfig } from '../config/config.ts';
import type { ConfigPath, PositionOf, Problem } from '../config/problem.ts';
import type { LoadedApi } from '../openapi/load.ts';
import type { CompileSchema } from './tool-draft.ts';

/** A tool as what describes a route gives it: a hand-listed call, an OpenAPI operation, an MCP server's listing. */
export interface ToolSource {
  /** Bare name, without the server's. */
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the arguments. */
  readonly input: JsonObject;
  /** JSON Schema of the result, where one is declared. */
  readonly result?: JsonObject;
  /** Dialect of both schemas where they name none themselves. */
  readonly dialect?: Dialect;
  /**
   * Compiles the two schemas, where they are part of a document whose definitions they refer to. It must be quick for a
   * schema that is never used: it is called for every tool at loading.
   */
  readonly compile?: CompileSchema;
  /** `said`: the operator said so here. `assumed`: it follows from the kind; any word wins. Absent: a word must say. */
  readonly writes?: { readonly said: boolean } | { readonly assumed: boolean };
  /** What `reads_outside` is where no word says. */
  readonly readsOutside: boolean;
  /** What `sends_out` is where no word says; false where absent. */
  readonly sendsOut?: boolean;
  /** The definition as an MCP server lists it; absent for what is offered to nobody as a tool. */
  readonly listed?: JsonObject;
  /** Further reasons why the arguments cannot be judged in full. */
  readonly partial?: readonly string[];
  /** How the call goes over HTTP; absent for MCP tools. */
  readonly operation?: SourceOperation;
  /**
   * The definition is held to what an operator saw of it. Words of a glob that lower a guard apply to such tools alone: a
   * server that adds `get_and_delete` must not profit from a `get_*` that was written before.
   */
  readonly pinned: boolean;
  /** Where a definition that differs from its pin keeps the tool from being called. */
  readonly pin?: 'changed' | 'missing';
  /** Where the tool stands in the configuration: its own entry, or what names the document or server. */
  readonly path: ConfigPath;
}

/** An HTTP request by method and path. */
export interface SourceOperation {
  /** Upper case. */
  readonly method: string;
  /** `/orders/{order_id}`. */
  readonly pathTemplate: string;
  /** Names of the arguments in the path. */
  readonly pathParameters: readonly string[];
  /** The operation of the route's document: it has the schemas, read when first asked for. */
  readonly api?: ApiOperation;
}

/** The document that a route's tools were made of. */
export interface RouteDocument {
  /** Equal where the same is made of the same document. */
  readonly key: string;
  readonly api: Api;
  /** Path at the upstream before every operation's, without a closing slash; empty where `upstream` says it. */
  readonly basePath: string;
  /** `sha256:<hex>`. */
  readonly digest: string;
  readonly files: LoadedApi;
}

/** What a route's description comes to. */
export interface RouteSource {
  readonly tools: readonly ToolSource[];
  /** False where more tools may come up while running (an MCP server's): a name that is not among them is no fault then. */
  readonly complete: boolean;
  readonly problems: readonly Problem[];
  /** True where the server could not be asked, so that its tools are not known. */
  readonly unlisted?: boolean;
  readonly document?: RouteDocument;
}

/** The seam between a kind of route and the catalogue: finds a route's tools. Faults are returned, never thrown. */
export type ToolProvider = (
  route: RouteConfig,
  positionOf: PositionOf,
  config: Config,
) => Promise<RouteSource> | RouteSource;
