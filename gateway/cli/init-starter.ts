import type { Backend } from './init-backend.ts';
import { printable } from './output.ts';

/** A tool as the gateway reads it from the backend. */
interface StarterTool {
  readonly name: string;
  readonly writes: boolean;
  /** Its arguments cannot be judged in full. */
  readonly partial: boolean;
  /** Method and path. */
  readonly request?: string;
}

export interface Starter {
  readonly name: string;
  readonly listen: string;
  /** Of the application's API key. */
  readonly digest: string;
  readonly backend: Backend;
  readonly tools: readonly StarterTool[];
}

/** The text of a first gateway.yaml: what was read and what is assumed stand beside each tool as comments. */
export function renderStarter({ name, listen, digest, backend, tools }: Starter): string {
  return `# Written by \`toolgate init\`. It works as it is; what it assumes is said where it does.
# Check a change with \`toolgate validate\`, and let a running gateway take it with SIGHUP.
listen: ${listen}
tenant: ${name}
audience: ${name}-gateway
keys: { signing: ./keys/gateway.pem }
store: ./data/toolgate.db # for several gateways: postgres://...
audit: { file: ./logs/audit.jsonl }

agents:
  # The key is that of the application which runs the agent and speaks for its person (\`host: true\`): it is shown what
  # must be confirmed. The key of an agent on its own has no \`host\`, and its writes wait for an approver.
  assistant: { privilege: high, credentials: [{ key: "${digest}", host: true, name: app }] }
# approvers: [{ name: ana, credentials: ["sha256:..."] }] # \`toolgate credential new\`

routes:
  - name: ${name}
    path: /${name}
${renderUpstream(backend)}    # The backend must take calls from this gateway alone: what can be reached round it is not guarded (\`toolgate doctor\`).
    agents: [assistant]
${renderSource(backend)}${renderTools(tools)}`;
}

function renderUpstream(backend: Backend): string {
  return backend.kind === 'mcp' ? '' : `    upstream: ${backend.upstream}\n`;
}

function renderSource(backend: Backend): string {
  if (backend.kind === 'mcp') {
    const server = 'url' in backend ? backend.url : { command: backend.command };
    return `    mcp: ${JSON.stringify(server)}
    # What a server says of its own tools is not believed: all are taken to write, and to bring what strangers wrote.
    # Their definitions are pinned when they are first seen (\`pins\`); \`writes: false\` says of one that it only reads.
`;
  }
  if (backend.kind === 'openapi') {
    const from = backend.found === undefined ? '' : ` # found at ${backend.found}`;
    return `    openapi: ${backend.document}${from}\n`;
  }
  return `    # No OpenAPI document was found at the backend, so its calls are listed by hand. This one is an example:
    http:
      - { name: get_root, method: GET, path: / }
    # - { name: get_order, method: GET, path: "/orders/{order_id}" }
    # - name: create_order
    #   method: POST
    #   path: /orders
    #   writes: true
    #   input: { type: object, properties: { sku: { type: string } }, required: [sku] }
`;
}

function renderTools(tools: readonly StarterTool[]): string {
  if (tools.length === 0) return '';
  const lines = tools.map((tool) => {
    const name = /^[A-Za-z][A-Za-z0-9_-]*$/.test(tool.name) ? tool.name : JSON.stringify(tool.name);
    const words = tool.writes ? `{ name: ${name}, writes: true }` : `{ name: ${name} }`;
    return `      - ${words} # ${printable(tool.request ?? 'called by its name')}: ${assumed(tool)}\n`;
  });
  return `    # Of a write, say how it is undone (\`undo: other_tool\`, \`undo: none\`, \`irreversible: true\`), how the backend takes an
    # idempotency key, and what must come before it (\`after: [...]\`). Of a read, \`reads_outside: true\` where its answer
    # holds what strangers wrote.
    tools:
${lines.join('')}`;
}

function assumed({ writes, partial }: StarterTool): string {
  const effect = writes
    ? 'assumed to write, so that a person confirms it; nothing is known of its undo, so a failed run waits for a person'
    : 'assumed to change nothing, and to answer nothing that strangers wrote';
  return partial ? `${effect}; its arguments cannot be judged in full, so a person is asked` : effect;
}
