import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request as it reached the backend. */
export interface Arrived {
  readonly method: string;
  /** As it came: nothing decoded. */
  readonly target: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: string;
}

/** A backend that writes down every request and answers with JSON. */
export interface EchoBackend {
  readonly url: string;
  readonly arrived: Arrived[];
  /** What is answered to a path. */
  readonly files: Map<string, string>;
  close(): Promise<void>;
}

/** Starts a backend on a free port; `answer` is what it says to everything that is no file. */
export async function startEcho(answer: unknown = {}): Promise<EchoBackend> {
  const arrived: Arrived[] = [];
  const files = new Map<string, string>();
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const target = request.url ?? '';
      const file = files.get(target);
      if (file === undefined) {
        const body = Buffer.concat(pieces).toString('utf8');
        arrived.push({ method: request.method ?? '', target, headers: request.rawHeaders, body });
      }
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(file ?? JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    arrived,
    files,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The values of a header, in order. */
export function valuesOf({ headers }: Arrived, name: string): string[] {
  return headers.flatMap((text, at) => (at % 2 === 0 && text.toLowerCase() === name ? [headers[at + 1] ?? ''] : []));
}
