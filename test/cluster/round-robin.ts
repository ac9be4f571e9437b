import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A load balancer as simple as one can be: each request goes to the next gateway, and nothing is ever sent twice. */
export interface RoundRobin {
  readonly url: string;
  /** Requests that each target answered, by its URL. */
  readonly served: ReadonlyMap<string, number>;
  /** Takes the targets of requests from now on. */
  use(targets: readonly string[]): void;
  close(): Promise<void>;
}

/**
 * Starts a balancer on a free port. A request that a target does not take is answered 599.
 * @param keepAlive Connections to targets are used again; without, each request has one of its own.
 */
export async function startRoundRobin(
  first: readonly string[],
  { keepAlive = true }: { readonly keepAlive?: boolean } = {},
): Promise<RoundRobin> {
  let targets = first;
  let turn = 0;
  const served = new Map<string, number>();
  const agent = new Agent({ keepAlive, maxSockets: 64 });
  const forward = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const target = targets[turn++ % targets.length] ?? '';
    const { method, url, headers } = incoming;
    const sent = request(`${target}${url}`, { method, headers, agent }, (answer) => {
      served.set(target, (served.get(target) ?? 0) + 1);
      outgoing.writeHead(answer.statusCode ?? 599, answer.headers);
      answer.pipe(outgoing);
    });
    sent.on('error', (error) => {
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(599, { 'x-error': error.message.replace(/[^ -~]/g, '') }).end();
    });
    incoming.pipe(sent);
  };
  const server = createServer(forward).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    served,
    use: (next) => {
      targets = next;
    },
    close: async () => {
      agent.destroy();
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
