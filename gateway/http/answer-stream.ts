import type { Readable } from 'node:stream';
import type { CallOutcome } from '../exchange.ts';
import type { EdgeExchange } from './edge-exchange.ts';

export interface StreamOptions {
  /** Settles once the outcome is stored. */
  readonly outcome: Promise<CallOutcome>;
  /** Reads the upstream to its end also when the client has gone. */
  readonly keepsReading: boolean;
  /** A client that takes nothing for so long is given up. */
  readonly stallMs: number;
}

/**
 * Writes an answer as it arrives, no faster than the client takes it: the head at once, each piece as it comes. The last
 * byte waits for the outcome to be stored: the end of the last chunk, or where a length was announced the last byte of it.
 * Half an answer is never made to look whole: its connection is cut.
 */
export function streamAnswer(
  exchange: EdgeExchange,
  status: number,
  headers: string[],
  body: Readable,
  options: StreamOptions,
): Promise<void> {
  const { response } = exchange;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let left = announcedLength(headers);
  let kept: Buffer | undefined;
  let stall: NodeJS.Timeout | undefined;

  const clientGone = (): void => {
    clearTimeout(stall);
    if (response.writableFinished) return;
    if (!options.keepsReading) body.destroy();
    else {
      body.off('data', pass);
      body.resume();
    }
  };
  const resume = (): void => {
    clearTimeout(stall);
    body.resume();
  };
  const pass = (chunk: Buffer): void => {
    let piece = chunk;
    left -= chunk.length;
    if (left === 0 && chunk.length > 0) {
      kept = chunk.subarray(chunk.length - 1);
      piece = chunk.subarray(0, chunk.length - 1);
    }
    if (piece.length === 0 || response.write(piece)) return;
    body.pause();
    stall = setTimeout(() => response.destroy(), options.stallMs);
  };
  const end = async (): Promise<void> => {
    try {
      await options.outcome;
    } catch (error) {
      response.destroy();
      throw error;
    }
    if (kept === undefined) response.end();
    else response.end(kept);
  };

  if (body.errored !== null) {
    // It broke while the answer was on its way here.
    response.destroy();
    options.outcome.then(() => resolve(), reject);
    return promise;
  }
  if (!response.destroyed) {
    try {
      response.writeHead(status, headers);
      response.flushHeaders();
    } catch (error) {
      body.destroy();
      throw error;
    }
  }
  response.on('drain', resume).once('close', clientGone);
  body.on('data', pass);
  body.once('end', () => end().then(resolve, reject));
  body.once('error', () => response.destroy());
  // An `error`, or a stream that was given up, closes without an `end`: the outcome still has to be stored.
  body.once('close', () => {
    if (!body.readableEnded) options.outcome.then(() => resolve(), reject);
  });
  if (response.destroyed) clientGone();
  return promise;
}

function announcedLength(headers: readonly string[]): number {
  for (let at = 0; at + 1 < headers.length; at += 2) {
    if (headers[at] === 'content-length') return Number(headers[at + 1]);
  }
  return -1;
}
