import type { Problem } from '../exchange.ts';
import type { EdgeExchange } from '../http/edge-exchange.ts';
import { renderProblem } from '../http/problems.ts';

/** A request of the edge as the SDK takes it. Its body was read before and is handed over apart. */
export function toWebRequest(exchange: EdgeExchange, signal?: AbortSignal): Request {
  const headers = new Headers();
  const raw = exchange.request.rawHeaders;
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] ?? '').toLowerCase();
    // Neither the credential nor what frames the body is anything to a handler of messages.
    if (name !== 'authorization' && name !== 'content-length' && name !== 'transfer-encoding')
      headers.append(name, raw[at + 1] ?? '');
  }
  const host = exchange.header('host') ?? 'localhost';
  return new Request(`http://${host}${exchange.path}`, {
    method: exchange.method,
    headers,
    ...(signal === undefined ? {} : { signal }),
  });
}

/**
 * Writes an answer of the SDK. An event stream goes out piece by piece, no faster than the client takes it; it is
 * cancelled where the client goes. Resolves when all is written.
 */
export async function writeWebResponse(exchange: EdgeExchange, answer: Response): Promise<void> {
  const { response } = exchange;
  const headers: string[] = [];
  for (const [name, value] of answer.headers) if (name !== 'connection') headers.push(name, value);
  const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream') === true;
  if (!isStream || answer.body === null) {
    const body = new Uint8Array(await answer.arrayBuffer());
    if (answer.status !== 204) headers.push('content-length', String(body.byteLength));
    exchange.answer({ status: answer.status, headers, body });
    return;
  }
  if (response.destroyed || response.headersSent) {
    await answer.body.cancel();
    return;
  }
  response.writeHead(answer.status, headers);
  response.flushHeaders();
  const reader = answer.body.getReader();
  const gone = (): void => {
    reader.cancel().catch(() => undefined);
  };
  response.once('close', gone);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || response.destroyed) break;
      if (!response.write(value)) await drained(response);
    }
  } finally {
    response.off('close', gone);
    if (!response.destroyed) response.end();
  }
}

/** Resolves when the client has taken what was written, or is gone. */
function drained(response: EdgeExchange['response']): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      response.off('drain', end).off('close', end);
      resolve();
    };
    response.on('drain', end).on('close', end);
    if (response.destroyed) end();
  });
}

/** A fault of a request before it is a message that could be answered: JSON-RPC has no id to answer with. */
export function writeRpcProblem(
  exchange: EdgeExchange,
  problem: Problem,
  code: number,
  id: string | number | null = null,
): void {
  const { status, headers } = renderProblem(problem);
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id,
    error: {
      code,
      message: problem.detail,
      data: {
        type: `urn:toolgate:${problem.code}`,
        ...(problem.pointer === undefined ? {} : { pointer: problem.pointer }),
      },
    },
  });
  const kept: string[] = [];
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? '';
    if (name !== 'content-type' && name !== 'content-length') kept.push(name, headers[at + 1] ?? '');
  }
  kept.push('content-type', 'application/json', 'content-length', String(Buffer.byteLength(body)));
  exchange.answer({ status, headers: kept, body });
}
