import { createHash } from 'node:crypto';

/** A text that must not end up in a log: it is written out as `[secret]`, and an inspection shows nothing of it. */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text itself. */
  reveal(): string {
    return this.#text;
  }

  /** `sha256:<hex>` of the text, which can be compared and shown. */
  digest(): string {
    return `sha256:${createHash('sha256').update(this.#text, 'utf8').digest('hex')}`;
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }
}
