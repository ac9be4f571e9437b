import { RoutingError } from '../../policy/route-template.ts';
import { Router } from '../../policy/routing.ts';
import { type JsonObject, type JsonValue, objectOf } from '../../receipts/json-value.ts';
import type { Config, RouteConfig } from '../config/config.ts';
import { type ConfigPath, ProblemLog } from '../config/problem.ts';
import type { RawHttpCall } from '../config/raw.ts';
import { nearestWord } from '../config/suggest.ts';
import { type PathTemplate, parametersOf, parsePathTemplate, shapeOf } from './path-template.ts';
import type { RouteSource, ToolSource } from './tool-source.ts';

/** The tools of a route whose calls are listed by hand. */
export function readHttpTools(config: Config, route: RouteConfig): RouteSource {
  const log = new ProblemLog(config.positionOf);
  const calls = route.source.kind === 'http' ? route.source.calls : [];
  const shapes = new Map<string, string>();
  const tools = calls.flatMap((call, index) => {
    const path = ['routes', route.index, 'http', index];
    const template = parsePathTemplate(call.path);
    if (typeof template === 'string') {
      log.error('path_template', [...path, 'path'], template);
      return [];
    }
    const shape = `${call.method} ${shapeOf(template)}`;
    const other = shapes.get(shape);
    if (other !== undefined) {
      log.error(
        'operation_ambiguous',
        [...path, 'path'],
        `\`${call.name}\` and \`${other}\` answer to the same requests (\`${call.method} ${call.path}\`)`,
      );
    }
    shapes.set(shape, call.name);
    return [toolOf(call, template, path, log)];
  });
  checkCrossings(tools, route, log);
  return { tools, complete: true, problems: log.problems };
}

/** Tells paths of which neither is the more concrete one and that both match a request: `/a/{x}` and `/{y}/b`. */
function checkCrossings(tools: readonly ToolSource[], route: RouteConfig, log: ProblemLog): void {
  if (log.problems.length > 0) return;
  try {
    new Router(tools.flatMap(({ name, operation }) => (operation === undefined ? [] : [{ name, ...operation }])));
  } catch (error) {
    if (!(error instanceof RoutingError)) throw error;
    log.error('operation_ambiguous', ['routes', route.index, 'http'], error.message);
  }
}

function toolOf(call: RawHttpCall, template: PathTemplate, path: ConfigPath, log: ProblemLog): ToolSource {
  if (call.input !== undefined) checkParameters(call, template, call.input, path, log);
  const reads = call.method === 'GET' || call.method === 'HEAD';
  return {
    name: call.name,
    ...(call.description === undefined ? {} : { description: call.description }),
    input: call.input ?? inputOf(template),
    ...(call.result === undefined ? {} : { result: call.result }),
    ...(call.writes !== undefined ? { writes: { said: call.writes } } : reads ? { writes: { assumed: false } } : {}),
    readsOutside: false,
    pinned: true,
    operation: { method: call.method, pathTemplate: template.text, pathParameters: parametersOf(template) },
    path,
  };
}

/** The arguments of a call that says nothing of them: its path's parameters as required texts, nothing else. */
function inputOf(template: PathTemplate): JsonObject {
  const names = parametersOf(template);
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
    required: names,
    additionalProperties: false,
  };
}

function checkParameters(
  call: RawHttpCall,
  template: PathTemplate,
  input: JsonObject,
  path: ConfigPath,
  log: ProblemLog,
): void {
  const properties = objectOf(input['properties']);
  const required = Array.isArray(input['required']) ? (input['required'] as readonly JsonValue[]) : [];
  for (const name of parametersOf(template)) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (schema === undefined) {
      const near = nearestWord(name, Object.keys(properties));
      log.error(
        'path_parameter',
        [...path, 'path'],
        `the input of \`${call.name}\` declares no \`${name}\`, which its path needs${near === undefined ? '' : `; did you mean \`{${near}}\`?`}`,
      );
    } else if (!required.includes(name)) {
      log.error(
        'path_parameter',
        [...path, 'input', 'required'],
        `\`${name}\` stands in the path of \`${call.name}\` and must be \`required\` in its input`,
      );
    } else if ([objectOf(schema)['type']].flat().some((type) => type === 'object' || type === 'array')) {
      log.error(
        'path_parameter',
        [...path, 'input', 'properties', name],
        `\`${name}\` stands in the path of \`${call.name}\`; a list or mapping cannot`,
      );
    }
  }
}
