import { randomBytes } from 'node:crypto';
import type { BodyPart } from '../../policy/openapi/request.ts';

/** A multipart body as it is sent. */
export interface Multipart {
  readonly text: string;
  readonly contentType: string;
}

/**
 * Writes parts as a `multipart/form-data` body (RFC 7578). Names have no quotes and line ends: the codec has seen to it.
 * The boundary is random, so that no argument can hold it.
 */
export function renderMultipart(parts: readonly BodyPart[]): Multipart {
  const boundary = `toolgate-${randomBytes(18).toString('hex')}`;
  const written = parts.map(({ name, contentType, text }) => {
    const type = contentType === undefined ? '' : `Content-Type: ${contentType}\r\n`;
    return `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n${type}\r\n${text}\r\n`;
  });
  return {
    text: `${written.join('')}--${boundary}--\r\n`,
    contentType: `multipart/form-data; boundary=${boundary}`,
  };
}
