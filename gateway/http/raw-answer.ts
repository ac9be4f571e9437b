import type { Duplex } from 'node:stream';
import type { Problem } from '../exchange.ts';
import { fault, renderProblem } from './problems.ts';

/** What bytes that are no HTTP, or that came too slowly, are answered; by the code of the parser or of node:http. */
export function clientFault(code: string): Problem {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return fault('headers_too_large', 'the header section is too large; send less in headers');
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return fault('request_timeout', 'the request did not come in time; send it again');
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return fault('too_large', 'the chunk extensions are too large');
  if (code === 'HPE_INVALID_METHOD') return fault('bad_request', 'the method of the request is none that HTTP knows');
  return fault('bad_request', 'the request is not HTTP/1.1 as RFC 9112 has it; correct how it is framed');
}

/** Answers on a bare socket and ends it. */
export function endRaw(socket: Duplex, problem: Problem): void {
  const { status, headers, body } = renderProblem(problem);
  let head = `HTTP/1.1 ${status} ${RAW_REASONS[status] ?? ''}\r\nconnection: close\r\n`;
  for (let at = 0; at < headers.length; at += 2) head += `${headers[at]}: ${headers[at + 1]}\r\n`;
  socket.end(`${head}\r\n${body}`, () => socket.destroy());
}

const RAW_REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Content Too Large',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  403: 'Forbidden',
  414: 'URI Too Long',
  417: 'Expectation Failed',
  505: 'HTTP Version Not Supported',
};
