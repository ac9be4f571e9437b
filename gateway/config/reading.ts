import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { KeyFault, parsePublicKey } from '../../receipts/keys.ts';
import type { ConfigPath, ProblemLog } from './problem.ts';
import { Secret } from './secret.ts';
import { parseDurationMs, parseSizeBytes } from './units.ts';

/** What reading a configuration's members shares: where faults go, and what paths are relative to. */
export class Reading {
  readonly log: ProblemLog;
  /** The configuration file's folder. */
  readonly folder: string;
  readonly #files: Set<string>;

  constructor(file: string, log: ProblemLog) {
    this.log = log;
    this.folder = dirname(file);
    this.#files = new Set([file]);
  }

  /** Every file that was read or is to be watched, absolute. */
  get files(): readonly string[] {
    return [...this.#files];
  }

  /** The absolute path of a file that the configuration names; it is watched from then on. */
  file(text: string): string {
    const absolute = resolve(this.folder, text);
    this.#files.add(absolute);
    return absolute;
  }

  /** The absolute path of a file that the gateway itself writes. */
  output(text: string): string {
    return resolve(this.folder, text);
  }

  /** The text of a file; undefined, and a fault told, where it cannot be read. */
  text(name: string, path: ConfigPath): string | undefined {
    try {
      return readFileSync(this.file(name), 'utf8');
    } catch (error) {
      const why = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
      this.log.error(
        'missing_file',
        path,
        `the file \`${name}\` cannot be read (${why}); paths are relative to the configuration file`,
      );
      return undefined;
    }
  }

  /** Tells a file or folder that is not there. */
  exists(name: string, path: ConfigPath): void {
    if (existsSync(this.file(name))) return;
    this.log.error('missing_file', path, `there is no \`${name}\`; paths are relative to the configuration file`);
  }

  /** A secret: the text itself, or what the file of `file:PATH` holds without its last line break. */
  secret(text: string, path: ConfigPath): Secret {
    if (!text.startsWith('file:')) return new Secret(text);
    const read = this.text(text.slice('file:'.length), path);
    if (read === '' || read === '\n') {
      this.log.error('empty_secret', path, `the file \`${text.slice('file:'.length)}\` is empty`);
    }
    return new Secret((read ?? '').replace(/\r?\n$/, ''));
  }

  /** The 32 bytes of a public key, from a PEM file or inline; undefined, and a fault told, where it is none. */
  publicKey(text: string, path: ConfigPath): Uint8Array | undefined {
    const inline = /^[A-Za-z0-9_-]{43}$/.test(text);
    const source = inline ? text : this.text(text, path);
    if (source === undefined) return undefined;
    try {
      return parsePublicKey(source);
    } catch (error) {
      if (!(error instanceof KeyFault)) throw error;
      this.log.error('bad_key', path, `the key \`${text}\` cannot be used: ${error.message}`);
      return undefined;
    }
  }

  /** Milliseconds of a duration, or of `fallback` where there is none. */
  durationMs(text: string | undefined, fallback: string): number {
    return parseDurationMs(text ?? fallback);
  }

  /** Bytes of a size, or of `fallback` where there is none. */
  sizeBytes(text: string | undefined, fallback: string): number {
    return parseSizeBytes(text ?? fallback);
  }

  /** Milliseconds since 1970 of an instant or a date; undefined, and a fault told, where there is no such day. */
  instantMs(text: string, path: ConfigPath): number | undefined {
    const ms = Date.parse(text);
    // Date.parse rolls 31 February over into March.
    const day = new Date(`${text.slice(0, 10)}T00:00:00Z`);
    if (Number.isNaN(ms) || Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== text.slice(0, 10)) {
      this.log.error('wrong_value', path, `\`${text}\` is no instant of the calendar`);
      return undefined;
    }
    return ms;
  }
}
