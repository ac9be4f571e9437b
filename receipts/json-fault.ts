/** What can be wrong with a JSON text under the strict profile. */
export type JsonFaultCode =
  | 'utf8'
  | 'bom'
  | 'syntax'
  | 'depth'
  | 'duplicate_key'
  | 'proto_key'
  | 'lone_surrogate'
  | 'negative_zero'
  | 'number';

/**
 * A JSON text that the strict profile refuses. `pointer` (RFC 6901) names the value at fault, or for a syntax error the
 * value being read; `''` is the whole document. The message says what to send instead and holds no value of the text.
 */
export class JsonFault extends Error {
  readonly code: JsonFaultCode;
  readonly pointer: string;

  constructor(code: JsonFaultCode, pointer: string, message: string) {
    super(message);
    this.name = 'JsonFault';
    this.code = code;
    this.pointer = pointer;
  }
}

/** A path of member names and array indexes in, its JSON pointer (RFC 6901 section 3) out. */
export function renderPointer(path: readonly (string | number)[]): string {
  let pointer = '';
  for (const part of path) pointer += `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`;
  return pointer;
}
