import { RoutingError, templateParameters } from '../route-template.ts';
import type { CompiledSchema } from '../schema/compile.ts';
import { TEXT_KIND, type ValueKind } from '../schema/kinds.ts';

/** Where a parameter stands in a request. */
export type ParameterPlace = 'path' | 'query' | 'header' | 'cookie';

/** How a parameter's arrays and objects are written (OpenAPI 3.2, "Style Values"; `json` is a `content` parameter). */
export type ParameterStyle =
  | 'simple'
  | 'label'
  | 'matrix'
  | 'form'
  | 'spaceDelimited'
  | 'pipeDelimited'
  | 'tabDelimited'
  | 'deepObject'
  | 'json';

/** One parameter of an operation. */
export interface Parameter {
  /** Its name in the request. */
  readonly name: string;
  /** The argument that it carries; the same as `name` unless the document gives one name twice. */
  readonly argument: string;
  readonly place: ParameterPlace;
  readonly style: ParameterStyle;
  readonly explode: boolean;
  readonly required: boolean;
  readonly kind: ValueKind;
}

/** How a body that can be read and written is laid out. */
export type BodyFormat = 'json' | 'form' | 'multipart';

/** How the body of an operation is made of arguments. */
export interface OperationBody {
  readonly format: BodyFormat;
  /** Media type to send, as declared: `application/json` or a `+json` type, or that of the form. */
  readonly contentType: string;
  readonly required: boolean;
  /** A body is written also where none of its members is given: `{}` was digested, so `{}` is what is sent. */
  readonly writesEmpty?: boolean;
  /** The argument that is the whole body; undefined where the body's members are arguments themselves. */
  readonly argument: string | undefined;
  /** How the fields of a form are written; those that it does not name are one text, or several for a list. */
  readonly fields: ReadonlyMap<string, FormField>;
}

/** One field of a form-urlencoded or multipart body. */
export interface FormField {
  readonly style: ParameterStyle;
  readonly explode: boolean;
  readonly kind: ValueKind;
  /** Media type of a multipart part, where the document names one. */
  readonly contentType?: string;
}

/** One operation of a backend: what routes to it and how its arguments are carried. */
export interface Operation {
  readonly name: string;
  /** Upper case. */
  readonly method: string;
  readonly pathTemplate: string;
  readonly parameters: readonly Parameter[];
  readonly body: OperationBody | undefined;
}

/** A call listed by hand. */
export interface PlainCall {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  /** Schema of the arguments; without one, the path's parameters are the arguments, as texts. */
  readonly input?: CompiledSchema;
}

const QUERY_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE']);

/**
 * The operation of a call listed by hand: arguments that the path does not name go to the query for GET, HEAD and
 * DELETE, to the members of a JSON body otherwise. Throws `RoutingError` for a broken path.
 */
export function plainOperation(call: PlainCall): Operation {
  const { name, path: pathTemplate, input } = call;
  const method = call.method.toUpperCase();
  const inPath = templateParameters({ name, method, pathTemplate });
  const declared = input?.topLevel ?? inPath;
  const required = new Set(input?.required);
  const parameters = inPath.map((parameter): Parameter => {
    if (!declared.includes(parameter)) {
      throw new RoutingError(
        'template_invalid',
        `the path \`${pathTemplate}\` of \`${name}\` names \`${parameter}\`, which its input does not declare`,
      );
    }
    return { ...plain(parameter, 'path', input), required: true };
  });
  const others = declared.filter((argument) => !inPath.includes(argument));
  if (QUERY_METHODS.has(method)) {
    for (const argument of others) {
      parameters.push({ ...plain(argument, 'query', input), required: required.has(argument) });
    }
  }
  const body: OperationBody | undefined =
    QUERY_METHODS.has(method) || input === undefined
      ? undefined
      : {
          format: 'json',
          contentType: 'application/json',
          required: false,
          argument: undefined,
          fields: new Map(),
          writesEmpty: others.length > 0,
        };
  return { name, method, pathTemplate, parameters, body };
}

function plain(name: string, place: 'path' | 'query', input: CompiledSchema | undefined): Parameter {
  const kind = input?.kindOf(name) ?? TEXT_KIND;
  const item = kind.isArray ? kind.item() : undefined;
  // What no style can spell is carried as JSON text.
  const nested = kind.isObject || item?.isObject === true || item?.isArray === true;
  const style = place === 'path' ? 'simple' : nested ? 'json' : 'form';
  return { name, argument: name, place, style, explode: place === 'query', required: false, kind };
}
