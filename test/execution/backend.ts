import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** A request as the backend saw it. */
export interface Seen {
  readonly tool: string;
  readonly body: Record<string, unknown>;
  readonly key: string | undefined;
}

/** How the backend answers a request: what it does, and how it says so. */
export type Manner = (seen: Seen, response: ServerResponse) => void | Promise<void>;

/** A backend that writes down what was asked and what it did; one that takes a key does a thing once for each key. */
export interface RecordingBackend {
  readonly url: string;
  /** Every request, in order. */
  readonly seen: readonly Seen[];
  /** What was done: once for each key, or each request without one. */
  readonly done: readonly Seen[];
  /** Effects of a tool. */
  of(tool: string): readonly Seen[];
  /** Answers the next `times` requests of a tool in another manner: those alone that hold a value, where one is given. */
  next(tool: string, manner: Manner, of?: { readonly times?: number; readonly value?: unknown }): void;
  /** Requests of a tool that were to be answered in another manner no longer are. */
  forget(tool: string): void;
  close(): Promise<void>;
}

/** Does the thing, and says nothing: the connection is cut. */
export function doAndCut(backend: RecordingBackend): Manner {
  return (seen, response) => {
    act(backend, seen);
    response.socket?.destroy();
  };
}

/** Does nothing, and answers a status. */
export function answerOnly(status: number, body: object = {}): Manner {
  return (_seen, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
}

const effects = new WeakMap<RecordingBackend, { readonly keys: Map<string, Seen>; readonly done: Seen[] }>();

/** Does what was asked, once for each key. */
export function act(backend: RecordingBackend, seen: Seen): Seen {
  const state = effects.get(backend);
  if (state === undefined) throw new Error('no such backend');
  const known = seen.key === undefined ? undefined : state.keys.get(`${seen.tool} ${seen.key}`);
  if (known !== undefined) return known;
  if (seen.key !== undefined) state.keys.set(`${seen.tool} ${seen.key}`, seen);
  state.done.push(seen);
  return seen;
}

/** Starts a backend whose tools are its paths: `POST /charge` does `charge`. */
export async function startBackend(port = 0): Promise<RecordingBackend> {
  const seen: Seen[] = [];
  const done: Seen[] = [];
  let manners: { readonly tool: string; readonly manner: Manner; readonly value: unknown }[] = [];
  const open = new Set<Socket>();
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://backend');
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const one: Seen = {
      tool: url.pathname.slice(1),
      body: text === '' ? Object.fromEntries(url.searchParams) : (JSON.parse(text) as Record<string, unknown>),
      key: request.headers['idempotency-key']?.toString(),
    };
    seen.push(one);
    const at = manners.findIndex(
      ({ tool, value }) => tool === one.tool && (value === undefined || Object.values(one.body).includes(value)),
    );
    const [special] = at === -1 ? [] : manners.splice(at, 1);
    if (special !== undefined) return special.manner(one, response);
    if (request.method !== 'GET') act(backend, one);
    response
      .writeHead(200, { 'content-type': 'application/json', 'set-cookie': 'session=1' })
      .end(JSON.stringify({ id: `${one.tool}-${done.length}`, status: 'done' }));
  }

  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const backend: RecordingBackend = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    done,
    of: (tool) => done.filter((one) => one.tool === tool),
    next: (tool, manner, { times = 1, value } = {}) => {
      for (let i = 0; i < times; i++) manners.push({ tool, manner, value });
    },
    forget: (tool) => {
      manners = manners.filter((manner) => manner.tool !== tool);
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
  effects.set(backend, { keys: new Map(), done });
  return backend;
}
