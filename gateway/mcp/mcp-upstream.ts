import type { SchemaFault } from '../../policy/schema/walk.ts';
import { NO_FAULTS, type Tool } from '../../policy/tool.ts';
import { isObject, type JsonObject } from '../../receipts/json-value.ts';
import type { Upstream, UpstreamAnswer, UpstreamCall, UpstreamTarget } from '../exchange.ts';
import { renderJson } from '../http/problems.ts';
import { answerOfError } from './call-fault.ts';
import { requestOf } from './recorded-reads.ts';
import type { ServerConnection } from './server-connection.ts';
import { requestServer } from './server-request.ts';

/** What stands behind an MCP route: a call of a tool is a `tools/call`, a recorded read the request that it is named after. */
export class McpUpstream implements Upstream {
  readonly #connection: ServerConnection;
  readonly #trusted: boolean;

  constructor(connection: ServerConnection, trusted: boolean) {
    this.#connection = connection;
    this.#trusted = trusted;
  }

  check(_tool: Tool, _args: JsonObject): readonly SchemaFault[] {
    return NO_FAULTS;
  }

  target({ name }: Tool): UpstreamTarget {
    return { protocol: 'mcp', method: requestOf(name, {}).method, ...this.#connection.address };
  }

  async send(call: UpstreamCall): Promise<UpstreamAnswer> {
    const { tool, relay, timeoutMs, abort, onSending, ownTraceparent } = call;
    const args = withKey(call);
    const { method, params } = requestOf(tool.name, args);
    try {
      const result = await requestServer(this.#connection, {
        method,
        params,
        timeoutMs,
        mayAsk: this.#trusted && relay?.quiet !== true,
        ...(relay === undefined ? {} : { relay }),
        ...(ownTraceparent === undefined ? {} : { traceparent: ownTraceparent }),
        ...(abort === undefined ? {} : { abort }),
        ...(onSending === undefined ? {} : { onSending }),
      });
      return {
        kind: 'answer',
        status: 200,
        headers: ['content-type', 'application/json'],
        body: Buffer.from(renderJson(withoutOurMeta(result))),
        ...(result['isError'] === true ? { saysFailed: true } : {}),
      };
    } catch (error) {
      return answerOfError(error, relay?.cancelled.aborted === true);
    }
  }

  async ready(): Promise<void> {
    await this.#connection.control();
  }

  /** The connection outlives the configuration that named it: its registry closes it. */
  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** The gateway alone writes the argument that carries a key; a header has no place in MCP. */
function withKey({ tool, arguments: args, upstreamKey }: UpstreamCall): JsonObject {
  const { idempotency } = tool;
  if (upstreamKey === undefined || idempotency === undefined || !('argument' in idempotency)) return args;
  return { ...args, [idempotency.argument]: upstreamKey };
}

/** Members of `_meta` that only the gateway may say. */
export function withoutOurMeta(result: JsonObject): JsonObject {
  const meta = result['_meta'];
  if (!isObject(meta) || !Object.keys(meta).some(isOurs)) return result;
  const kept = Object.fromEntries(Object.entries(meta).filter(([name]) => !isOurs(name)));
  return { ...result, _meta: kept };
}

/** Whether a `_meta` member is the gateway's own. */
function isOurs(name: string): boolean {
  return name.toLowerCase().startsWith('toolgate/');
}
