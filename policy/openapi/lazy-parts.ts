import type { JsonObject } from '../../receipts/json-value.ts';
import type { CompiledSchema } from '../schema/compile.ts';
import type { Scope } from '../schema/document.ts';
import { TEXT_KIND, type ValueKind } from '../schema/kinds.ts';
import { type BodySource, readFields } from './body.ts';
import type { FormField, OperationBody, Parameter } from './operation.ts';
import type { ParameterSource } from './parameters.ts';

/** A body with where its members stand among the arguments. */
export interface PlacedBody {
  readonly source: BodySource;
  /** The argument that holds the whole body. */
  readonly argument: string | undefined;
  /** Members at the top: an object schema to merge in, or one to apply beside. */
  readonly flat: { readonly schema: JsonObject; readonly scope: Scope } | undefined;
  readonly names: readonly string[];
  readonly alone: CompiledSchema;
}

/** A parameter whose kind is read when a call first needs it. */
export class LazyParameter implements Parameter {
  readonly name: string;
  readonly argument: string;
  readonly place: Parameter['place'];
  readonly style: Parameter['style'];
  readonly explode: boolean;
  readonly required: boolean;
  readonly #input: CompiledSchema;
  #kind: ValueKind | undefined;

  constructor(argument: string, source: ParameterSource, input: CompiledSchema) {
    this.name = source.name;
    this.argument = argument;
    this.place = source.place;
    this.style = source.style;
    this.explode = source.explode;
    this.required = source.required;
    this.#input = input;
  }

  get kind(): ValueKind {
    this.#kind ??= this.#input.kindOf(this.argument) ?? TEXT_KIND;
    return this.#kind;
  }
}

/** A body whose fields are read when a call first needs them. */
export class LazyBody implements OperationBody {
  readonly format: OperationBody['format'];
  readonly contentType: string;
  readonly required: boolean;
  readonly argument: string | undefined;
  readonly #placed: PlacedBody;
  #fields: ReadonlyMap<string, FormField> | undefined;

  constructor(placed: PlacedBody) {
    this.format = placed.source.format;
    this.contentType = placed.source.contentType;
    this.required = placed.source.required;
    this.argument = placed.argument;
    this.#placed = placed;
  }

  get fields(): ReadonlyMap<string, FormField> {
    if (this.format === 'json') return NO_FIELDS;
    this.#fields ??= readFields(this.#placed.source, this.#placed.alone, this.#placed.names);
    return this.#fields;
  }
}

const NO_FIELDS: ReadonlyMap<string, FormField> = new Map();
