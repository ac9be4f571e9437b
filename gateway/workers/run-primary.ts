import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Config } from '../config/config.ts';
import { renderProblems } from '../config/problem.ts';
import type { Environment } from '../config/substitute.ts';
import { digestOf } from '../config/watch.ts';
import { refuseFaultPoints } from '../fault-points.ts';
import type { Log } from '../log.ts';
import { lookAtServers } from '../mcp/look-at-servers.ts';
import { createPinWriter, pinFileOf } from '../mcp/pin-book.ts';
import { openSigningKey } from '../serve/run-gateway.ts';
import type { Serving } from '../serve/serving.ts';
import { listenFault } from '../serve/start-fault.ts';
import { readTls } from '../serve/tls.ts';
import { ConfigRefused, filesOf, readWhole, rereadWhole, type WholeConfig } from '../serve/whole-config.ts';
import { WorkersFault } from './fault.ts';
import { type InForce, Primary } from './primary.ts';

export interface PrimaryRunOptions {
  readonly configFile: string;
  readonly env: Environment;
  readonly log: Log;
}

/**
 * Starts the workers that a configuration wants, in processes of the same command line. This process takes no call itself:
 * the workers listen on one port, and the system spreads connections over them, so that none is ever in the hands of a
 * process that could only pass it on. Throws `ConfigRefused`, `StartFault`, or `WorkersFault` where they do not start.
 */
export async function runPrimary({ configFile, env, log }: PrimaryRunOptions): Promise<Serving> {
  refuseFaultPoints(env);
  const read = (): Promise<WholeConfig> => lookAtServers((provider) => readWhole(configFile, env, provider), log);
  let whole = await read();
  await readTls(whole.config);
  await openSigningKey(whole.config, log);
  // A key that was made just now is a file of the configuration like the others, and workers find it there.
  if (!filesOf(whole).includes(whole.config.keys.signingFile)) whole = await read();
  const primary = new Primary({
    count: whole.config.workers,
    port: await freePort(whole.config),
    inForce: await inForceOf(whole),
    pinFirstUse: createPinWriter(pinFileOf(configFile)),
    log,
    onGivenUp: (why) => {
      log.fatal(`${why}; the gateway ends`);
      void primary.end(0).finally(() => process.exit(1));
    },
  });
  const url = await primary.start();
  if (url === undefined) throw new WorkersFault('a worker did not start, and has said why');
  primary.metrics.taken(Date.now());
  let reloading: Promise<unknown> = Promise.resolve();
  const reload = async (): Promise<{ readonly taken: boolean; readonly text: string }> => {
    try {
      const next = await lookAtServers((provider) => rereadWhole(whole, env, provider), log);
      await readTls(next.config);
      const fault = await primary.reload(await inForceOf(next));
      if (fault !== undefined) return await refuse(1, fault);
      whole = next;
      primary.metrics.taken(Date.now());
      return { taken: true, text: renderProblems(next.warnings) };
    } catch (error) {
      if (!(error instanceof ConfigRefused)) throw error;
      return refuse(error.problems.length, renderProblems(error.problems));
    }
  };
  const refuse = async (faults: number, text: string): Promise<{ readonly taken: false; readonly text: string }> => {
    log.error({ faults }, 'the configuration has faults; the old one stays');
    await primary.refused(faults);
    return { taken: false, text };
  };
  return {
    url,
    whole: () => whole,
    reload: () => {
      const turn = reloading.then(reload);
      reloading = turn.catch(() => undefined);
      return turn;
    },
    reopen: () => primary.reopen(),
    close: async (lameDuckMs) => {
      if (!(await primary.end(lameDuckMs))) throw new WorkersFault('a worker did not end cleanly');
    },
    kill: () => void primary.kill(),
  };
}

/**
 * The port to listen on, chosen where it is 0. Throws `StartFault` where somebody listens there: workers would share it with
 * a stranger of the same user, and not notice.
 */
async function freePort(config: Config): Promise<number> {
  const { host, port } = config.listen;
  const server = createServer();
  try {
    server.listen({ host, port });
    await once(server, 'listening');
    const address = server.address();
    return address === null || typeof address === 'string' ? port : address.port;
  } catch (error) {
    throw listenFault(config, error);
  } finally {
    server.close();
  }
}

async function inForceOf(whole: WholeConfig): Promise<InForce> {
  const files = filesOf(whole);
  return { files, digest: await digestOf(files) };
}
