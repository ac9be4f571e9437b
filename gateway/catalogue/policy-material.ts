import type { Tool } from '../../policy/tool.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { Config } from '../config/config.ts';
import type { BuiltCatalogue } from './build.ts';
import type { RuntimeRoute } from './runtime-route.ts';
import type { ToolSettings } from './tool-settings.ts';

/**
 * All that decides a call or shapes what is sent, as plain JSON: catalogue, rulebook record, routes, upstreams, templates,
 * defaults, settings. Its digest is `policy` of every entry (docs/formats.md). It holds nothing of the machine (no paths,
 * no address that the gateway listens on, no key files) and of a secret only its digest, so that every replica has the same.
 */
export function policyMaterial(config: Config, built: BuiltCatalogue, rulebookRecord?: JsonValue): JsonObject {
  const tools = [...built.catalogue.tools.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  return {
    agents: Object.fromEntries(
      [...config.agents.values()].map((agent) => [
        agent.name,
        { privilege: agent.privilege, defaults: agent.defaults },
      ]),
    ),
    tools: Object.fromEntries(tools.map((tool) => [tool.id, toolMaterial(tool, built.settings.get(tool.id))])),
    routes: Object.fromEntries(built.routes.map((route) => [route.name, routeMaterial(route)])),
    facts: Object.fromEntries([...built.facts.values()].map((fact) => [fact.name, plain({ ...fact })])),
    rulebook: rulebookRecord ?? null,
    settings: plain({
      tenant: config.tenant,
      language: config.language,
      timezone: config.timezone,
      taintPolicy: config.taintPolicy,
      confirmations: { mode: config.confirmations.mode ?? null, point: config.confirmations.point ?? null },
      carryMs: config.sessions.carryMs,
      runs: { ...config.runs },
      enforce: [...config.receipts.enforce].sort(),
      lapsed: config.licence?.lapsed,
    }),
  };
}

function toolMaterial(tool: Tool, settings: ToolSettings | undefined): JsonObject {
  const { input, result, agents, ...words } = tool;
  // What a document says is in the digest of its bytes, which a thousand schemas need not be read for.
  const api = settings?.operation?.api;
  return plain({
    ...words,
    ...(api === undefined ? { input: input.schema, partial: input.partial } : {}),
    result: result === api?.result ? undefined : result?.schema,
    agents: [...agents].sort(),
    settings:
      settings === undefined
        ? undefined
        : {
            timeoutMs: settings.timeoutMs,
            retryAttempts: settings.retryAttempts,
            idempotencyRequired: settings.idempotencyRequired,
            failedWhen: settings.failedWhen,
            checks: settings.checks,
            limits: settings.limits,
            spend: settings.spend,
            currency: settings.currency,
            filter: settings.filter,
            outcome: settings.outcome,
            references: Object.fromEntries(settings.references),
          },
  });
}

function routeMaterial(route: RuntimeRoute): JsonObject {
  const { source } = route;
  return plain({
    path: route.path,
    upstream: route.upstream,
    document: route.document?.digest,
    basePath: route.document?.basePath,
    kind: source.kind,
    mcp:
      source.kind !== 'mcp'
        ? undefined
        : 'url' in source
          ? { url: source.url }
          : {
              command: source.command,
              env: Object.fromEntries(Object.entries(source.env).map(([name, value]) => [name, value.digest()])),
            },
    verify: route.verify,
    agents: [...route.agents].sort(),
    operations: route.operations.map(({ toolId, method, pathTemplate }) => ({ toolId, method, pathTemplate })),
    timeoutMs: route.timeoutMs,
    limitBytes: route.limitBytes,
    // Whom the upstream must prove to be. Certificates are renewed and their authority with them: that changes no decision.
    upstreamName: route.upstreamTls?.serverName,
    upstreamHeaders: route.upstreamHeaders.map(({ name, value }) => [name, value.digest()]),
    headers: route.headers,
    passAuthorization: route.passAuthorization,
    methods: route.methods,
    annotations: route.annotations,
    pins: route.pins,
    pass: route.pass,
    idempotencyRequired: route.idempotencyRequired,
  });
}

/** What is JSON of a value; members that are not said are left out, as `JSON.stringify` does, but bigints are kept. */
function plain(value: Readonly<Record<string, unknown>>): JsonObject {
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]) => (member === undefined ? [] : [[key, plainValue(member)]])),
  );
}

function plainValue(value: unknown): JsonValue {
  if (value === null) return null;
  if (Array.isArray(value)) return value.map(plainValue);
  switch (typeof value) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'bigint':
      return value;
    case 'object':
      return plain(value as Readonly<Record<string, unknown>>);
    default:
      throw new TypeError(`a ${typeof value} has no place in the policy`);
  }
}
