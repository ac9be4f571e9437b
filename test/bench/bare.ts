import { createServer } from 'node:http';
import { Pool } from 'undici';

/** The bare forwarder that the gateway is measured against: node:http and undici dispatch, body buffered and parsed. */
const upstream = process.argv[2] ?? '';
const pool = new Pool(upstream, { connections: 256, pipelining: 1 });

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const text = Buffer.concat(chunks).toString('utf8');
    const body = text === '' ? null : JSON.stringify(JSON.parse(text));
    const answer: Buffer[] = [];
    let status = 0;
    let type = 'application/json';
    pool.dispatch(
      {
        method: request.method ?? 'GET',
        path: request.url ?? '/',
        headers: body === null ? {} : { 'content-type': 'application/json' },
        body,
      },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, code, headers) => {
          status = code;
          const given = headers['content-type'];
          if (typeof given === 'string') type = given;
        },
        onResponseData: (_controller, chunk) => {
          answer.push(chunk);
        },
        onResponseEnd: () => {
          const whole = Buffer.concat(answer);
          response.writeHead(status, { 'content-type': type, 'content-length': whole.length });
          response.end(whole);
        },
        onResponseError: () => {
          response.writeHead(502);
          response.end();
        },
      },
    );
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address !== null && typeof address !== 'string') process.stdout.write(`${address.port}\n`);
});
process.on('SIGTERM', () => process.exit(0));
