import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { StoreSetupError } from './port.ts';
import { SqliteEngine } from './sqlite-engine.ts';
import { describeFault } from './sqlite-error.ts';
import { DONE, type Opened, type Replies, type Reply, type Requests, type WorkerInput } from './sqlite-messages.ts';

// The thread that owns the file. Whatever arrived while the disk was busy with one group makes up the next.

/** Values of one group: about a thousand commits, so that the first of them does not wait for ever more to come. */
const GROUP_VALUES = 100_000;

function serve(port: MessagePort, input: WorkerInput): void {
  const engine = new SqliteEngine(input);
  try {
    port.postMessage({ opened: true, secret: engine.open() } satisfies Opened);
  } catch (error) {
    const setup = error instanceof StoreSetupError;
    port.postMessage({ opened: false, setup, message: describeFault(error, input.path) } satisfies Opened);
    port.close();
    return;
  }
  const answer = (replies: readonly Reply[]): void => {
    port.postMessage((replies.every((reply) => reply === DONE) ? replies.length : replies) satisfies Replies);
  };
  port.on('message', (first: Requests | 'close') => {
    const group: Requests[] = [];
    let values = 0;
    let next: Requests | 'close' | undefined = first;
    while (next !== undefined && next !== 'close') {
      group.push(next);
      values += next.length;
      next = values < GROUP_VALUES ? receiveMessageOnPort(port)?.message : undefined;
    }
    if (group.length > 0) answer(engine.run(group, answer));
    if (next === 'close') {
      engine.close();
      port.close();
    }
  });
}

if (parentPort === null) throw new Error('sqlite-worker is started by sqlite-store');
serve(parentPort, workerData);
