import type { ApiOperation } from '../../policy/openapi/api.ts';
import type { CompiledSchema } from '../../policy/schema/compile.ts';
import type { ValueKind } from '../../policy/schema/kinds.ts';
import type { SchemaFault } from '../../policy/schema/walk.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';

/** The arguments of an operation as a tool's schema. Nothing of the document is read before it is asked for. */
export class OperationInput implements CompiledSchema<JsonObject> {
  readonly #operation: ApiOperation;

  constructor(operation: ApiOperation) {
    this.#operation = operation;
  }

  get schema(): JsonObject {
    return this.#operation.input.schema;
  }

  /** Also what cannot be judged because no schema says it: a style that is not known, a parameter that leads nowhere. */
  get partial(): readonly string[] {
    return this.#operation.partial;
  }

  get unusable(): string | undefined {
    return this.#operation.input.unusable;
  }

  get topLevel(): readonly string[] {
    return this.#operation.input.topLevel;
  }

  get kind(): ValueKind {
    return this.#operation.input.kind;
  }

  get sealed(): boolean {
    return this.#operation.input.sealed;
  }

  get required(): readonly string[] {
    return this.#operation.input.required;
  }

  validate(value: JsonValue): readonly SchemaFault[] {
    return this.#operation.input.validate(value);
  }

  declares(path: string): boolean {
    return this.#operation.input.declares(path);
  }

  kindOf(argument: string): ValueKind | undefined {
    return this.#operation.input.kindOf(argument);
  }

  render(): JsonObject {
    return this.#operation.input.render();
  }
}
