import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from 'pino';

/** The operational log: what operators read about the process itself. What happened to calls stands in the audit log. */
export type Log = Logger;

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

/** Members whose value is never written, wherever in what is logged they stand up to the depth that is looked at. */
const SECRET_NAMES = [
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'x-api-key',
  'credential',
  'credentials',
  'apiKey',
  'password',
  'secret',
  'token',
  'privateKey',
  'encryptionKey',
  'idempotencyKey',
] as const;

/** Members that hold what callers, people or backends said: an operator's log is not the place for it. */
const VALUE_NAMES = ['arguments', 'turns', 'context', 'result', 'body', 'display', 'values', 'request'] as const;

const DEPTHS = ['', '*.', '*.*.'] as const;

export interface LogOptions {
  readonly level: LogLevel;
  /** Where lines go; standard error by default, so that standard output stays free for the audit log. */
  readonly to?: DestinationStream;
}

/**
 * JSON lines, written by the way: they are collected and written when 2 KiB are there or a moment has passed, and what
 * is left goes out when the process exits. No more than 4 KiB go at once, which a pipe takes whole: several workers write
 * to one. Credentials and values are replaced by `[hidden]`.
 */
export function createLog(options: LogOptions): Log {
  const paths = [...SECRET_NAMES, ...VALUE_NAMES].flatMap((name) => DEPTHS.map((depth) => pathOf(depth, name)));
  return pino(
    {
      level: options.level,
      base: { pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      redact: { paths, censor: '[hidden]' },
      serializers: { err: renderError },
    },
    options.to ?? destination({ dest: 2, sync: false, minLength: 2048, maxWrite: 4096, periodicFlush: 200 }),
  );
}

/** pino's paths take a name that is no identifier in brackets. */
function pathOf(depth: string, name: string): string {
  return name.includes('-') ? `${depth.slice(0, -1)}["${name}"]` : `${depth}${name}`;
}

interface RenderedError {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
  readonly cause?: RenderedError;
}

/** Name, code, message and stack. Other members of an error (a request, a response) may hold values and stay out. */
function renderError(error: unknown): RenderedError | unknown {
  return error instanceof Error ? renderOne(error, 3) : error;
}

function renderOne(error: Error, depth: number): RenderedError {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  return {
    type: error.name,
    message: error.message,
    ...(code === undefined ? {} : { code }),
    ...(error.stack === undefined ? {} : { stack: error.stack }),
    ...(error.cause instanceof Error && depth > 0 ? { cause: renderOne(error.cause, depth - 1) } : {}),
  };
}
