import { type Context, Hono } from 'hono';
import { AuditFault } from '../audit/fault.ts';
import { storeUnavailable } from '../enforce/problems.ts';
import type { Problem } from '../exchange.ts';
import type { EdgeExchange } from '../http/edge-exchange.ts';
import { fault } from '../http/problems.ts';
import { StoreFault } from '../store/port.ts';
import { type ApiBindings, ApiProblem, problemAnswer } from './api-context.ts';
import { postCall, postCheck, postReceipt } from './calls.ts';
import { getConfirmation, getConfirmations, postDecision } from './confirmations.ts';
import { getConsole, readConsole } from './console.ts';
import { getHealth, getReadiness } from './health.ts';
import { getMetrics } from './metrics.ts';
import { API_DESCRIPTION } from './openapi.ts';
import { postOutcome } from './outcomes.ts';
import { getRun, getRuns, postEnd, postSettleUndo, postUndo } from './runs.ts';
import { getSession } from './sessions.ts';
import { getTools } from './tools.ts';
import { getOutcomes, postSettlement } from './unknown-outcomes.ts';
import { getUsage } from './usage.ts';

/** The control API (docs/api.md), as one Hono application. */
type Api = Hono<{ Bindings: ApiBindings }>;

/** Answers one request of the control API. */
export type ApiHandler = (env: ApiBindings) => Promise<void>;

/** Makes the control API. Throws where a file of the console's page is missing. */
export function createApi(): ApiHandler {
  const app: Api = new Hono();
  const assets = readConsole();
  app.post('/v1/check', (c) => postCheck(c.env));
  app.post('/v1/receipts', (c) => postReceipt(c.env));
  app.post('/v1/call', (c) => postCall(c.env));
  app.post('/v1/outcomes', (c) => postOutcome(c.env));
  app.get('/v1/outcomes', (c) => getOutcomes(c.env));
  app.post('/v1/outcomes/:id/settle', (c) => postSettlement(c.env, c.req.param('id')));
  app.get('/v1/runs', (c) => getRuns(c.env));
  app.get('/v1/runs/:id', (c) => getRun(c.env, c.req.param('id')));
  app.post('/v1/runs/:id/undo', (c) => postUndo(c.env, c.req.param('id')));
  app.post('/v1/runs/:id/end', (c) => postEnd(c.env, c.req.param('id')));
  app.post('/v1/runs/:id/settle', (c) => postSettleUndo(c.env, c.req.param('id')));
  app.get('/v1/tools', (c) => getTools(c.env));
  app.get('/v1/usage', (c) => getUsage(c.env));
  app.get('/v1/sessions/:id', (c) => getSession(c.env, c.req.param('id')));
  app.get('/v1/confirmations', (c) => getConfirmations(c.env));
  app.get('/v1/confirmations/:id', (c) => getConfirmation(c.env, c.req.param('id')));
  app.post('/v1/confirmations/:id/approve', (c) => postDecision(c.env, c.req.param('id'), 'approved'));
  app.post('/v1/confirmations/:id/deny', (c) => postDecision(c.env, c.req.param('id'), 'denied'));
  app.get('/console', (c) => getConsole(c.env, assets));
  app.get('/console/*', (c) => getConsole(c.env, assets));
  app.get('/healthz', () => getHealth());
  app.get('/readyz', (c) => getReadiness(c.env.gateway));
  app.get('/openapi.json', (c) => c.json(API_DESCRIPTION));
  app.notFound((c) => answerMissing(app, c));
  app.get('/metrics', (c) => getMetrics(c.env));
  app.onError((error, c) => answerProblem(c.env, problemOf(error, c.env)));
  const answer: ApiHandler = async (env) => {
    const { exchange } = env;
    // The body stays with the edge, which reads it under its own limits; Hono sees the method and the path.
    const request = new Request(`http://gateway${exchange.path}`, { method: exchange.method });
    const response = await app.fetch(request, env);
    await write(exchange, response);
  };
  return (env) => {
    const { exchange, gateway } = env;
    const { tracing } = gateway;
    if (tracing === undefined || !CALLS.has(exchange.path)) return answer(env);
    return tracing.serve(exchange, exchange.path, () => answer(env));
  };
}

/** Paths that a call comes by, which is what has a span. */
const CALLS: ReadonlySet<string> = new Set(['/v1/check', '/v1/call', '/v1/receipts']);

/** A path that exists with another method is 405 and names it (RFC 9110 section 15.5.6). */
function answerMissing(app: Api, c: Context<{ Bindings: ApiBindings }>): Response {
  const methods = ['GET', 'POST'].filter((method) => app.router.match(method, c.req.path)[0].length > 0);
  if (methods.length === 0) {
    return answerProblem(c.env, fault('no_route', 'there is nothing at this path; see /openapi.json'));
  }
  const answer = answerProblem(c.env, fault('method_not_allowed', `this path takes ${methods.join(', ')}`));
  answer.headers.set('allow', methods.join(', '));
  return answer;
}

function answerProblem({ gateway }: ApiBindings, problem: Problem): Response {
  gateway.metrics.problem(problem.code);
  return problemAnswer(problem);
}

function problemOf(error: Error, env: ApiBindings): Problem {
  if (error instanceof ApiProblem) return error.problem;
  if (error instanceof StoreFault || error instanceof AuditFault) {
    env.gateway.log.error({ err: error }, 'a request was refused because it could not be recorded');
    return storeUnavailable(
      error instanceof StoreFault ? 'the store cannot be reached' : 'the audit log cannot be written',
    );
  }
  env.gateway.log.error({ err: error }, 'a request failed');
  return fault('internal_error', 'the gateway failed while it handled the request; its log says why');
}

async function write(exchange: EdgeExchange, response: Response): Promise<void> {
  const body = new Uint8Array(await response.arrayBuffer());
  const headers: string[] = [];
  for (const [name, value] of response.headers) if (name !== 'content-length') headers.push(name, value);
  // Once: two lengths, alike or not, are what strict clients refuse (RFC 9112 section 6.3).
  headers.push('content-length', String(body.byteLength));
  exchange.answer({ status: response.status, headers, body });
}
