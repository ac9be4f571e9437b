import { readRequest } from '../../policy/openapi/reading.ts';
import type { RequestBody } from '../../policy/openapi/request.ts';
import type { SchemaFault } from '../../policy/schema/walk.ts';
import { NO_FAULTS } from '../../policy/tool.ts';
import { parseJson } from '../../receipts/json.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { RuntimeRoute } from '../catalogue/runtime-route.ts';
import { enforce } from '../enforce.ts';
import type { EnforceAnswer, EnforceRequest, Problem } from '../exchange.ts';
import { writeRouteAnswer } from '../http/answer.ts';
import { callerOf } from '../http/authenticate.ts';
import { type CallHeaders, readCallHeaders } from '../http/call-headers.ts';
import type { EdgeExchange } from '../http/edge-exchange.ts';
import { headerValues, pickHeaders } from '../http/headers.ts';
import { fault } from '../http/problems.ts';
import type { EdgeUpgrade } from '../http/server.ts';
import { traceOf } from '../http/trace-context.ts';
import { forwardedHeaders } from '../http/upstream-headers.ts';
import type { HttpOperations, RoutedTool } from './http-operations.ts';
import type { PassPaths } from './pass-paths.ts';
import { readRequestBody } from './request-body.ts';
import type { Route, RouteContext } from './route-table.ts';

type Caller = EnforceRequest['caller'];

/** A route over an HTTP backend, its calls listed by hand or by a document: a request is turned into a call and back, and nothing else reaches the backend. */
export class HttpRoute implements Route {
  readonly name: string;
  readonly path: string;
  readonly takesMatrix: boolean;
  readonly #route: RuntimeRoute;
  readonly #operations: HttpOperations;
  readonly #passed: ReadonlySet<string>;
  readonly #isTrustedProxy: (address: string) => boolean;
  readonly #passes: PassPaths | undefined;

  constructor(
    route: RuntimeRoute,
    operations: HttpOperations,
    isTrustedProxy: (address: string) => boolean,
    passes: PassPaths | undefined,
  ) {
    this.name = route.name;
    this.path = route.path;
    this.takesMatrix = operations.hasMatrix;
    this.#route = route;
    this.#operations = operations;
    const passed = new Set([...route.headers, 'accept']);
    if (route.passAuthorization) passed.add('authorization');
    this.#passed = passed;
    this.#isTrustedProxy = isTrustedProxy;
    this.#passes = passes;
  }

  takesUpgrade(path: string): boolean {
    return this.#passes?.find(this.#segments(path)) !== undefined;
  }

  async upgrade(upgrade: EdgeUpgrade, context: RouteContext): Promise<void> {
    if (this.#passes === undefined) throw new Error(`the route \`${this.name}\` passes nothing`);
    await this.#passes.upgrade(upgrade, context);
  }

  /** The raw segments of a path below the route's. */
  #segments(path: string): readonly string[] {
    return path.slice(this.path.length + 1).split('/');
  }

  handle(exchange: EdgeExchange, context: RouteContext): Promise<void> {
    const { tracing } = context.gateway;
    if (tracing === undefined) return this.#handle(exchange, context);
    return tracing.serve(exchange, this.path, () => this.#handle(exchange, context));
  }

  async #handle(exchange: EdgeExchange, context: RouteContext): Promise<void> {
    const identity = context.authenticate(exchange.header('authorization'), exchange.request.socket);
    if ('problem' in identity) return exchange.problem(identity.problem);
    const caller = callerOf(identity);
    if ('problem' in caller) return exchange.problem(caller.problem);
    const headers = readCallHeaders(exchange);
    if ('problem' in headers) return this.#refuse(exchange, context, caller, headers.problem);
    const segments = this.#segments(exchange.path);
    const match = this.#operations.router.match(exchange.method, segments);
    // Who may not reach a tool is told no more than that there is none: nothing of the request is held against it first.
    if (match.kind === 'match' && this.#reaches(context, caller, headers, match.operation.name)) {
      const { name, operation, pathTemplate } = match.operation;
      exchange.span?.routed(pathTemplate);
      const reading = readRequestBody(exchange, operation, name, this.#route.limitBytes);
      const body = reading instanceof Promise ? await reading : reading;
      if (body !== undefined && 'problem' in body) return this.#refuse(exchange, context, caller, body.problem);
      const { args, faults } = this.#read(exchange, operation, match.rawParameters, body);
      return this.#enforce(exchange, context, { caller, headers, tool: name, args, faults });
    }
    if (match.kind === 'ambiguous') {
      const names = match.names.map((name) => `\`${name.slice(this.name.length + 1)}\``).join(' and ');
      const problem = fault('ambiguous_path', `the path could be meant for ${names}; call the tool by its name`);
      return this.#refuse(exchange, context, caller, problem);
    }
    const allowed =
      match.kind === 'method' ? this.#reachableMethods(exchange, context, caller, headers, match.allowed) : [];
    if (allowed.length > 0) {
      const problem = fault('method_not_allowed', `this path takes ${allowed.join(', ')}`);
      await this.#log(context, caller, problem);
      return exchange.problem(problem, allowed);
    }
    // Only what is no tool's, whatever its method: loading refuses a pattern that could cover one.
    const pattern = match.kind === 'unknown' ? this.#passes?.find(segments) : undefined;
    const { agent } = headers.members;
    if (pattern !== undefined && this.#passes?.reaches(caller, agent) === true) {
      exchange.span?.routed(pattern.text);
      return this.#passes.web(exchange, context.gateway, caller, agent, pattern);
    }
    // Nothing else that matches no tool is forwarded; that it was tried stands in the history.
    const tool = `${this.name}/${exchange.method} (no tool)`;
    return this.#enforce(exchange, context, { caller, headers, tool, args: {}, faults: [] });
  }

  /** Methods of the same path whose tools this caller reaches: what else exists is not told. */
  #reachableMethods(
    exchange: EdgeExchange,
    context: RouteContext,
    caller: Caller,
    headers: CallHeaders,
    methods: readonly string[],
  ): readonly string[] {
    const segments = this.#segments(exchange.path);
    return methods.filter((method) => {
      const match = this.#operations.router.match(method, segments);
      return match.kind === 'match' && this.#reaches(context, caller, headers, match.operation.name);
    });
  }

  /** Whether the agent that the call names, else any that its caller may name, reaches the tool. */
  #reaches({ gateway }: RouteContext, caller: Caller, { members }: CallHeaders, toolId: string): boolean {
    const tool = gateway.loaded.catalogue.tools.get(toolId);
    if (tool === undefined) return false;
    if (members.agent !== undefined) return caller.agents.has(members.agent) && tool.agents.has(members.agent);
    for (const agent of caller.agents) if (tool.agents.has(agent)) return true;
    return false;
  }

  #read(
    exchange: EdgeExchange,
    operation: RoutedTool['operation'],
    rawParameters: ReadonlyMap<string, string>,
    body: RequestBody | undefined,
  ): { readonly args: JsonObject; readonly faults: readonly SchemaFault[] } {
    const read = readRequest(operation, {
      rawParameters,
      rawQuery: exchange.query === '' ? undefined : exchange.query,
      header: (header) => headerValues(exchange.request, header),
      body,
      parseJson,
    });
    return read.ok ? { args: read.value, faults: NO_FAULTS } : { args: {}, faults: read.faults };
  }

  async #enforce(
    exchange: EdgeExchange,
    { gateway }: RouteContext,
    call: {
      readonly caller: Caller;
      readonly headers: CallHeaders;
      readonly tool: string;
      readonly args: JsonObject;
      readonly faults: readonly SchemaFault[];
    },
  ): Promise<void> {
    const { members, receipt, wantEntry } = call.headers;
    const { verify } = this.#route;
    if (verify === 'check' && receipt !== undefined) {
      return exchange.problem(
        fault('bad_member', 'this route checks each call itself and takes no receipt; leave `Toolgate-Receipt` out'),
      );
    }
    const answer: EnforceAnswer = await enforce(gateway, {
      caller: call.caller,
      tool: call.tool,
      arguments: call.args,
      faults: call.faults,
      members,
      byReceipt: verify === 'receipt' || (verify === 'either' && receipt !== undefined),
      ...(receipt === undefined ? {} : { receipt }),
      purpose: 'forward',
      via: 'route',
      route: this.name,
      wantEntry,
      gone: () => exchange.departure,
      passedHeaders: this.#passedHeaders(exchange),
      ...traceOf(exchange),
    });
    await writeRouteAnswer(exchange, answer, this.#route.timeoutMs);
  }

  /** The headers that the route names, and who forwarded the request: nothing else that a caller sent goes upstream. */
  #passedHeaders(exchange: EdgeExchange): readonly string[] {
    const forwarded = forwardedHeaders(exchange, this.#isTrustedProxy);
    const picked = pickHeaders(exchange.request, this.#passed);
    return picked.length === 0 ? forwarded : [...forwarded, ...picked];
  }

  async #refuse(exchange: EdgeExchange, context: RouteContext, caller: Caller, problem: Problem): Promise<void> {
    await this.#log(context, caller, problem);
    exchange.problem(problem);
  }

  /** A malformed request of a known caller is in the audit log; where that cannot be written, the answer is still a refusal. */
  async #log({ gateway }: RouteContext, caller: Caller, problem: Problem): Promise<void> {
    const event = { event: 'problem', problem: problem.code, status: problem.status } as const;
    try {
      await gateway.audit.append({ ...event, route: this.name, caller: caller.name });
    } catch (error) {
      gateway.log.error({ err: error, problem: problem.code }, 'a refused request is not in the audit log');
    }
  }
}
