import { connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';

/** A load over keep-alive connections, each sending its next request when it has the answer to the last. */
export interface LoadOptions {
  readonly port: number;
  readonly connections: number;
  readonly durationMs: number;
  /** The whole request, head and body, of the n-th call of a connection. */
  readonly request: (connection: number, n: number) => string | Buffer;
  /** At most so many calls a second over all connections; as fast as they come where absent. */
  readonly ratePerSecond?: number;
}

export interface LoadResult {
  readonly calls: number;
  readonly perSecond: number;
  /** Answers by status. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Runs a load against 127.0.0.1 and stops by itself. */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const statuses: Record<string, number> = {};
  const times: number[] = [];
  const startedAt = performance.now();
  const endsAt = startedAt + options.durationMs;
  const pauseMs = options.ratePerSecond === undefined ? 0 : (1000 * options.connections) / options.ratePerSecond;
  await Promise.all(
    Array.from({ length: options.connections }, (_, index) => drive(options, index, endsAt, pauseMs, statuses, times)),
  );
  const seconds = (performance.now() - startedAt) / 1000;
  times.sort((a, b) => a - b);
  return {
    calls: times.length,
    perSecond: times.length / seconds,
    statuses,
    p50Ms: times[Math.floor(times.length / 2)] ?? Number.NaN,
    p99Ms: times[Math.floor(times.length * 0.99)] ?? Number.NaN,
  };
}

function drive(
  options: LoadOptions,
  index: number,
  endsAt: number,
  pauseMs: number,
  statuses: Record<string, number>,
  times: number[],
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(options.port, '127.0.0.1');
    socket.setNoDelay(true);
    let n = 0;
    let sentAt = 0;
    let received = '';
    const send = (): void => {
      sentAt = performance.now();
      socket.write(options.request(index, n++));
    };
    socket.on('connect', send);
    socket.on('error', reject);
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      const end = received.indexOf('\r\n\r\n');
      if (end === -1) return;
      const length = lengthOf(received.slice(0, end));
      if (received.length < end + 4 + length) return;
      const status = received.slice(9, 12);
      statuses[status] = (statuses[status] ?? 0) + 1;
      received = received.slice(end + 4 + length);
      const now = performance.now();
      times.push(now - sentAt);
      if (now >= endsAt) {
        socket.destroy();
        resolve();
      } else if (pauseMs > 0) setTimeout(send, Math.max(0, pauseMs - (now - sentAt)));
      else send();
    });
  });
}

function lengthOf(head: string): number {
  const at = head.toLowerCase().indexOf('content-length:');
  if (at === -1) return 0;
  const line = head.slice(at + 15, head.indexOf('\r\n', at + 15) === -1 ? undefined : head.indexOf('\r\n', at + 15));
  return Number(line.trim());
}
