import { createInterface } from 'node:readline';
import { openStore } from '../../gateway/store/open.ts';
import { StoreFault } from '../../gateway/store/port.ts';
import { aClaim } from './records.ts';

// A process of its own that commits to the store at argv[2]: `run` commits claims without end and prints the link of
// each once it is stored; `one` commits a claim of about a hundred kilobytes and prints what became of it.

const store = await openStore(process.argv[2] ?? '');
process.stdout.write('open\n');
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'run') {
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (;;) {
          const claim = aClaim();
          await store.commit([{ op: 'claim', claim }]);
          process.stdout.write(`${claim.link}\n`);
        }
      }),
    );
  }
  if (line === 'one') {
    const claim = aClaim({ request: 'x'.repeat(100_000) });
    try {
      await store.commit([{ op: 'claim', claim }]);
      process.stdout.write(`${claim.link}\n`);
    } catch (error) {
      if (!(error instanceof StoreFault)) throw error;
      process.stdout.write(`fault ${error.maybe} ${error.message}\n`);
    }
  }
}
await store.close();
