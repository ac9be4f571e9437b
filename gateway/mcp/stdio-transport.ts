import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { type JSONRPCMessage, ReadBuffer, serializeMessage, type Transport } from '@modelcontextprotocol/client';
import { getDefaultEnvironment } from '@modelcontextprotocol/client/stdio';
import { DigitKeeper } from './wire-digits.ts';

/** How a server is started that speaks over its standard input and output. */
export interface StdioCommand {
  readonly command: readonly string[];
  /** Beside what every process needs (PATH, HOME and their like); nothing else of the gateway's own environment. */
  readonly env: Readonly<Record<string, string>>;
  /** The folder that it runs in, absolute. */
  readonly folder: string;
  /** Told of each line that it writes to standard error. */
  readonly onStderr: (line: string) => void;
}

/** A message of the server may be so large, in bytes. */
const MAX_MESSAGE_BYTES: number = 64 << 20;
/** A server that was told to end is given so long before it is made to. */
const END_MS = 1_000;
const MAX_STDERR_LINE = 2_000;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/**
 * A server process and the messages to and from it, one JSON text a line. Other than the SDK's own it keeps every digit
 * of large integers, and is told of the server's standard error line by line.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** With `pid`, tells the SDK that this is a process: one that is silent is a server of the older era. */
  readonly stderr = null;
  readonly #command: StdioCommand;
  readonly #buffer: ReadBuffer = new ReadBuffer({ maxBufferSize: MAX_MESSAGE_BYTES });
  readonly #digits: DigitKeeper = new DigitKeeper('json');
  #child: Child | undefined;

  constructor(command: StdioCommand) {
    this.#command = command;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  start(): Promise<void> {
    const [program = '', ...args] = this.#command.command;
    return new Promise((resolve, reject) => {
      const child: Child = spawn(program, args, {
        cwd: this.#command.folder,
        env: { ...getDefaultEnvironment(), ...this.#command.env },
        stdio: ['pipe', 'pipe', 'pipe'],
        windowsHide: true,
      });
      this.#child = child;
      child.once('spawn', resolve);
      child.once('error', (error) => {
        reject(error);
        this.onerror?.(error);
      });
      child.once('close', () => {
        this.#child = undefined;
        this.onclose?.();
      });
      // A server that has gone makes writing fail; that it went is told by `close`.
      child.stdin.on('error', (error) => this.onerror?.(error));
      child.stdout.on('error', (error) => this.onerror?.(error));
      child.stdout.on('data', (chunk: Buffer) => this.#take(chunk));
      this.#readStderr(child.stderr);
    });
  }

  send(message: JSONRPCMessage): Promise<void> {
    const child = this.#child;
    if (child === undefined) return Promise.reject(new Error('the server process has ended'));
    return new Promise((resolve, reject) => {
      child.stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()));
    });
  }

  async close(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
    child.stdin.end();
    const timers = [
      setTimeout(() => child.kill('SIGTERM'), END_MS),
      setTimeout(() => child.kill('SIGKILL'), 3 * END_MS),
    ];
    await ended;
    for (const timer of timers) clearTimeout(timer);
  }

  #take(chunk: Buffer): void {
    try {
      this.#buffer.append(Buffer.from(this.#digits.push(chunk)));
    } catch (error) {
      this.onerror?.(asError(error));
      this.#child?.kill('SIGTERM');
      return;
    }
    for (;;) {
      try {
        const message = this.#buffer.readMessage();
        if (message === null) return;
        this.onmessage?.(message);
      } catch (error) {
        // A line that is no message, such as a start-up greeting, is passed over.
        this.onerror?.(asError(error));
      }
    }
  }

  #readStderr(stderr: Readable): void {
    let rest = '';
    stderr.setEncoding('utf8');
    stderr.on('data', (chunk: string) => {
      const lines = `${rest}${chunk}`.split('\n');
      rest = (lines.pop() ?? '').slice(0, MAX_STDERR_LINE);
      for (const line of lines) if (line.trim() !== '') this.#command.onStderr(line.slice(0, MAX_STDERR_LINE));
    });
    stderr.on('error', () => undefined);
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
