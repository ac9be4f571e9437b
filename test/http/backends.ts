import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createHttpServer, type Server as HttpServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A server that a test started, on a port of its own. */
export interface Backend {
  readonly port: number;
  readonly origin: string;
  /** Connections that were taken. */
  readonly connections: () => number;
  /** Connections that are open. */
  readonly open: () => number;
  readonly close: () => Promise<void>;
}

/** A backend of bare bytes: `onRequest` is called when the head of a request (and its `Content-Length`) has arrived. */
export function rawBackend(onRequest: (socket: Socket, request: string) => void): Promise<Backend> {
  return start(
    createTcpServer((socket) => {
      let text = '';
      socket.on('error', () => socket.destroy());
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
        const end = text.indexOf('\r\n\r\n');
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0);
        if (end === -1 || text.length < end + 4 + length) return;
        const request = text;
        text = '';
        onRequest(socket, request);
      });
    }),
  );
}

export function httpBackend(listener: RequestListener): Promise<Backend> {
  const server = createHttpServer(listener);
  return start(server);
}

export async function start(server: Server | HttpServer, scheme = 'http'): Promise<Backend> {
  let taken = 0;
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    taken += 1;
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    origin: `${scheme}://127.0.0.1:${port}`,
    connections: () => taken,
    open: () => open.size,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}

/** A port on which nothing listens. */
export async function unusedPort(): Promise<number> {
  const backend = await start(createTcpServer());
  await backend.close();
  return backend.port;
}

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/** A self-signed certificate for a name, by the `openssl` program; nothing where it is not installed. */
export function makeCertificate(name: string): Certificate | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'toolgate-cert-'));
  const key = join(folder, 'key.pem');
  const cert = join(folder, 'cert.pem');
  const alt = /^[\d.]+$/.test(name) ? `IP:${name}` : `DNS:${name}`;
  const options = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  try {
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        ...options,
        '-keyout',
        key,
        '-out',
        cert,
        '-subj',
        `/CN=${name}`,
        '-addext',
        `subjectAltName=${alt}`,
      ],
      { stdio: 'ignore' },
    );
    return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
  } catch {
    return undefined;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits until `holds`, at most `ms`; answers whether it does. */
export async function eventually(holds: () => boolean, ms = 8_000): Promise<boolean> {
  const until = Date.now() + ms;
  while (!holds()) {
    if (Date.now() > until) return false;
    await sleep(5);
  }
  return true;
}
