import { startPostgres } from './postgres.ts';

// A throwaway PostgreSQL in a process of its own, since what starts it has its own mind about how its process ends: it
// prints where the server is, or why there is none, and stops it when its standard input ends.

const server = await startPostgres({ own: true });
process.stdout.write(`${JSON.stringify(typeof server === 'string' ? { why: server } : { url: server.url })}\n`);
process.stdin.resume().once('end', () => {
  if (typeof server === 'string') return;
  server.close().catch((error: unknown) => {
    process.stderr.write(`PostgreSQL did not stop: ${String(error)}\n`);
  });
});
