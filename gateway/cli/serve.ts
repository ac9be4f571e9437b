import cluster from 'node:cluster';
import { loadConfig } from '../config/load.ts';
import { hasErrors, renderProblems } from '../config/problem.ts';
import { parseDurationMs } from '../config/units.ts';
import { createLog, type Log, type LogLevel } from '../log.ts';
import { ConfigDiffers, runGateway } from '../serve/run-gateway.ts';
import type { Serving } from '../serve/serving.ts';
import { StartFault } from '../serve/start-fault.ts';
import { ConfigRefused } from '../serve/whole-config.ts';
import { ChannelFault } from '../workers/channel.ts';
import { WorkersFault } from '../workers/fault.ts';
import { runPrimary } from '../workers/run-primary.ts';
import { runWorker } from '../workers/worker.ts';
import { CliFault } from './command.ts';
import { follow } from './serving.ts';

export interface ServeOptions {
  readonly config: string;
  readonly watch?: boolean;
  readonly lameDuck: string;
  readonly logLevel: LogLevel;
}

/** Runs a gateway; resolves when it takes calls. Signals do the rest. Throws `CliFault` where it does not start. */
export async function serve(options: ServeOptions): Promise<void> {
  const lameDuckMs = readDuration(options.lameDuck);
  const log = createLog({ level: options.logLevel });
  if (cluster.isWorker) {
    return starting(options.config, () => runWorker(options.config, log, lameDuckMs)).catch((error: unknown) => {
      // What did not start has closed all that it had, and ends by itself once it lets its primary go.
      if (process.connected) process.disconnect();
      throw error;
    });
  }
  const serving = await starting(options.config, () => start(options.config, log));
  await follow(serving, { log, lameDuckMs, watch: options.watch === true });
}

/** How many processes serve. What is wrong with a configuration is told by whoever loads the whole of it. */
async function start(configFile: string, log: Log): Promise<Serving> {
  const { config } = await loadConfig(configFile, { env: process.env });
  return config !== undefined && config.workers > 1
    ? runPrimary({ configFile, env: process.env, log })
    : runAlone(configFile, log);
}

async function runAlone(configFile: string, log: Log): Promise<Serving> {
  const running = await runGateway({ configFile, env: process.env, log });
  return {
    url: running.url,
    whole: running.whole,
    reload: async () => {
      const problems = await running.reload();
      return { taken: !hasErrors(problems), text: renderProblems(problems) };
    },
    reopen: () => running.gateway.audit.reopen(),
    close: (lameDuckMs) => running.close({ lameDuckMs }),
    kill: () => undefined,
  };
}

/** What says all there is to say in its message. */
const TOLD = [StartFault, ConfigDiffers, WorkersFault, ChannelFault] as const;

async function starting<T>(configFile: string, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    if (error instanceof ConfigRefused) {
      process.stderr.write(renderProblems(error.problems));
      throw new CliFault(1, `\`${configFile}\` has faults, so the gateway did not start`);
    }
    if (error instanceof Error && TOLD.some((kind) => error instanceof kind)) throw new CliFault(1, error.message);
    throw error;
  }
}

function readDuration(text: string): number {
  try {
    return parseDurationMs(text);
  } catch {
    throw new CliFault(2, `\`${text}\` is no time; say \`5s\` or \`500ms\``);
  }
}
