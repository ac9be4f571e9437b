import { connect, type Socket } from 'node:net';

/** What came back over a raw connection. */
export interface RawAnswer {
  readonly status: number;
  /** Lower-case names; the last of a name counts. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Everything, as it came. */
  readonly text: string;
}

/**
 * Sends bytes as they are and reads until the peer closes, an answer is whole, or `waitMs` passed.
 * @param pieces Sent one after another, `gapMs` apart.
 */
export function sendRaw(
  port: number,
  pieces: string | readonly string[],
  { waitMs = 8_000, gapMs = 20, answers = 1 }: { waitMs?: number; gapMs?: number; answers?: number } = {},
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ host: '127.0.0.1', port });
    let text = '';
    const list = typeof pieces === 'string' ? [pieces] : [...pieces];
    const done = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(parseAnswer(text));
    };
    const timer = setTimeout(done, waitMs);
    const next = (): void => {
      const piece = list.shift();
      if (piece === undefined || socket.destroyed) return;
      socket.write(Buffer.from(piece, 'latin1'), () => {
        if (list.length > 0) setTimeout(next, gapMs);
      });
    };
    socket.setNoDelay(true);
    socket.on('connect', next);
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      if (countAnswers(text) >= answers) done();
    });
    socket.on('close', done);
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNRESET' || error.code === 'EPIPE') return;
      clearTimeout(timer);
      reject(error);
    });
  });
}

/** How many whole answers with a Content-Length stand in `text`. */
function countAnswers(text: string): number {
  let count = 0;
  let rest = text;
  for (;;) {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) return count;
    const head = rest.slice(0, end);
    const status = Number(head.slice(9, 12));
    if (status >= 100 && status < 200) {
      rest = rest.slice(end + 4);
      continue;
    }
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    if (length === undefined || rest.length < end + 4 + Number(length)) return count;
    count += 1;
    rest = rest.slice(end + 4 + Number(length));
  }
}

function parseAnswer(text: string): RawAnswer {
  let rest = text;
  while (/^HTTP\/1\.1 1\d\d/.test(rest)) rest = rest.slice(rest.indexOf('\r\n\r\n') + 4);
  const end = rest.indexOf('\r\n\r\n');
  const [line = '', ...fields] = (end === -1 ? rest : rest.slice(0, end)).split('\r\n');
  const headers: Record<string, string> = {};
  for (const field of fields) {
    const colon = field.indexOf(':');
    headers[field.slice(0, colon).toLowerCase()] = field.slice(colon + 1).trim();
  }
  return { status: Number(line.split(' ')[1] ?? 0), headers, body: end === -1 ? '' : rest.slice(end + 4), text };
}
