import type { ApiOperation } from '../../policy/openapi/api.ts';
import { templateParameters } from '../../policy/route-template.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { SourceOperation, ToolSource } from '../catalogue/tool-source.ts';
import type { ConfigPath } from '../config/problem.ts';

/** An operation of a document as a route's tool. Its schema is read when first asked for. */
export class OperationSource implements ToolSource {
  readonly name: string;
  readonly writes: { readonly assumed: boolean };
  /** The document is the operator's, and so is the backend that it describes; words may say otherwise. */
  readonly readsOutside = false;
  readonly pinned = true;
  readonly operation: SourceOperation;
  readonly path: ConfigPath;
  readonly #api: ApiOperation;

  constructor(api: ApiOperation, path: ConfigPath) {
    const { method, pathTemplate } = api;
    this.name = api.name;
    this.writes = { assumed: api.writes };
    this.operation = { method, pathTemplate, pathParameters: templateParameters(api), api };
    this.path = path;
    this.#api = api;
  }

  get description(): string {
    return this.#api.description;
  }

  get input(): JsonObject {
    return this.#api.input.schema;
  }
}
