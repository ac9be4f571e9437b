import type { Caller } from '../../policy/call.ts';
import { matchesPass, type PassPattern, parsePassPattern } from '../../policy/pass-pattern.ts';
import { AuditFault } from '../audit/fault.ts';
import { upstreamUrl } from '../catalogue/check-passes.ts';
import type { RuntimeRoute } from '../catalogue/runtime-route.ts';
import { storeUnavailable } from '../enforce/problems.ts';
import type { Problem } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import { callerOf } from '../http/authenticate.ts';
import { readCallHeaders } from '../http/call-headers.ts';
import { type EdgeExchange, peerAddress } from '../http/edge-exchange.ts';
import { headerOf } from '../http/headers.ts';
import {
  createPassThrough,
  isWebSocket,
  NO_WEBSOCKET,
  type PassedRequest,
  type PassThrough,
} from '../http/pass-through.ts';
import { fault } from '../http/problems.ts';
import { endRaw } from '../http/raw-answer.ts';
import type { EdgeUpgrade } from '../http/server.ts';
import { type ForwardedRequest, forwardedHeaders } from '../http/upstream-headers.ts';
import { tlsOf } from './http-upstream.ts';
import type { RouteContext } from './route-table.ts';

/** A passed request is no call that could be sent twice: its backend's spans stand right under that of the request. */
function underSpan(passed: PassedRequest, traceparent: string | undefined): PassedRequest {
  return traceparent === undefined
    ? passed
    : { ...passed, forwarded: [...passed.forwarded, 'traceparent', traceparent] };
}

/** The `pass` of one route: what is let through unchecked to its upstream, for callers that reach the route. */
export class PassPaths {
  readonly #route: RuntimeRoute;
  readonly #patterns: readonly PassPattern[];
  readonly #basePath: string;
  readonly #passage: PassThrough;
  readonly #isTrustedProxy: (address: string) => boolean;

  constructor(route: RuntimeRoute, isTrustedProxy: (address: string) => boolean) {
    const { origin, pathname } = new URL(upstreamUrl(route));
    this.#route = route;
    this.#patterns = route.pass.map(parsePassPattern);
    this.#basePath = pathname.replace(/\/+$/, '');
    this.#isTrustedProxy = isTrustedProxy;
    this.#passage = createPassThrough({
      origin,
      ...(route.upstreamTls === undefined ? {} : { tls: tlsOf(route.upstreamTls) }),
      idleTimeoutMs: route.timeoutMs,
      passAuthorization: route.passAuthorization,
      headers: route.upstreamHeaders.flatMap(({ name, value }) => [name, value.reveal()]),
    });
  }

  /** The pattern that lets a path through; its raw segments below the route's path. */
  find(segments: readonly string[]): PassPattern | undefined {
    return this.#patterns.find((pattern) => matchesPass(pattern, segments));
  }

  /** Whether the agent that is named, else any that the caller may name, reaches the route. */
  reaches(caller: Caller, agent: string | undefined): boolean {
    const { agents } = this.#route;
    if (agent !== undefined) return caller.agents.has(agent) && agents.has(agent);
    return [...caller.agents].some((name) => agents.has(name));
  }

  /** Passes a request of a caller that reaches the route. */
  async web(
    exchange: EdgeExchange,
    gateway: Gateway,
    caller: Caller,
    agent: string | undefined,
    pattern: PassPattern,
  ): Promise<void> {
    const { limitBytes } = this.#route;
    const problem =
      this.#passage.faultOf(exchange, limitBytes) ??
      (await this.#record(gateway, caller, agent, exchange.method, pattern));
    if (problem !== undefined) return exchange.problem(problem);
    if (exchange.isGone) return;
    const passed = underSpan(this.#passed(gateway, exchange, exchange), exchange.span?.traceparent);
    this.#passage.web(exchange, passed, limitBytes);
    await new Promise<void>((resolve) => exchange.response.once('close', () => resolve()));
  }

  /** Passes an upgrade, or answers why not. Its caller shows a credential as for any request. */
  async upgrade(upgrade: EdgeUpgrade, { gateway, authenticate }: RouteContext): Promise<void> {
    const { request, socket, target, secure } = upgrade;
    const header = (name: string): string | undefined => headerOf(request, name);
    const refuse = (problem: Problem): void => {
      gateway.metrics.problem(problem.code);
      endRaw(socket, problem);
    };
    if (!isWebSocket(request)) return refuse(NO_WEBSOCKET);
    const identity = authenticate(header('authorization'), request.socket);
    if ('problem' in identity) return refuse(identity.problem);
    const caller = callerOf(identity);
    if ('problem' in caller) return refuse(caller.problem);
    const headers = readCallHeaders({ header });
    if ('problem' in headers) return refuse(headers.problem);
    const pattern = this.find(target.path.slice(this.#route.path.length + 1).split('/'));
    const { agent } = headers.members;
    if (pattern === undefined || !this.reaches(caller, agent)) {
      return refuse(fault('upgrade_refused', 'the path takes no upgrade; leave the Upgrade header out'));
    }
    const problem = await this.#record(gateway, caller, agent, 'GET', pattern);
    if (problem !== undefined) return refuse(problem);
    if (socket.destroyed) return;
    const from = { request, header, secure, remoteAddress: peerAddress(request.socket) };
    this.#passage.upgrade(upgrade, this.#passed(gateway, target, from));
  }

  /** Ends upgraded connections: they were made under rules that no longer stand, or the process ends. */
  endUpgrades(): void {
    this.#passage.endUpgrades();
  }

  close(): void {
    this.#passage.close();
  }

  #passed(
    gateway: Gateway,
    { path, query }: { readonly path: string; readonly query: string },
    from: ForwardedRequest,
  ): PassedRequest {
    const below = path.slice(this.#route.path.length);
    const rawPath = `${this.#basePath}${below}` || '/';
    return {
      rawPath: query === '' ? rawPath : `${rawPath}?${query}`,
      forwarded: forwardedHeaders(from, this.#isTrustedProxy),
      onError: (error) => gateway.log.warn({ err: error, route: this.#route.name }, 'a passed request broke off'),
    };
  }

  /** The line that says that nothing was checked; where it cannot be written, nothing is passed. */
  async #record(
    gateway: Gateway,
    caller: Caller,
    agent: string | undefined,
    method: string,
    { text }: PassPattern,
  ): Promise<Problem | undefined> {
    const route = this.#route.name;
    try {
      await gateway.audit.append({
        event: 'pass',
        route,
        caller: caller.name,
        ...(agent === undefined ? {} : { agent }),
        method,
        pattern: text,
      });
    } catch (error) {
      if (!(error instanceof AuditFault)) throw error;
      gateway.log.error({ err: error, route }, 'a request was not passed because it could not be recorded');
      return storeUnavailable('the audit log cannot be written');
    }
    gateway.metrics.passed(route, text);
    return undefined;
  }
}
