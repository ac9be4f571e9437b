import { createServer } from 'node:http';

/** A backend that is never the limit: 400 bytes of JSON for every request. Prints its port. */
const body = JSON.stringify({ order_id: '4411', status: 'paid', note: 'x'.repeat(350) });
const head = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) };

const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    response.writeHead(200, head);
    response.end(body);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address !== null && typeof address !== 'string') process.stdout.write(`${address.port}\n`);
});
process.on('SIGTERM', () => process.exit(0));
