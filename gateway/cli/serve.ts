import { hasErrors, renderProblems } from '../config/problem.ts';
import { parseDurationMs } from '../config/units.ts';
import { type ConfigWatch, watchConfig } from '../config/watch.ts';
import { createLog, type Log, type LogLevel } from '../log.ts';
import { type RunningGateway, runGateway } from '../serve/run-gateway.ts';
import { StartFault } from '../serve/start-fault.ts';
import { ConfigRefused, filesOf, type WholeConfig } from '../serve/whole-config.ts';
import { CliFault } from './command.ts';

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
  const running = await start(options.config, log);
  tell(running.whole(), renderStart(running));
  const watch = options.watch === true ? followFiles(running, log) : undefined;
  onSignals(running, log, lameDuckMs, watch);
}

async function start(configFile: string, log: Log): Promise<RunningGateway> {
  try {
    return await runGateway({ configFile, env: process.env, log });
  } catch (error) {
    if (error instanceof ConfigRefused) {
      process.stderr.write(renderProblems(error.problems));
      throw new CliFault(1, `\`${configFile}\` has faults, so the gateway did not start`);
    }
    if (error instanceof StartFault) throw new CliFault(1, error.message);
    throw error;
  }
}

/** Standard output is the audit log's, where it goes there; what people read then goes to standard error. */
function tell({ config }: WholeConfig, text: string): void {
  (config.audit.file === 'stdout' ? process.stderr : process.stdout).write(text);
}

function renderStart({ url, whole }: RunningGateway): string {
  const { config, built, warnings } = whole();
  const tools = built.catalogue.tools.size;
  const routes = built.routes.length;
  const counts = `${tools} ${tools === 1 ? 'tool' : 'tools'} on ${routes} ${routes === 1 ? 'route' : 'routes'}`;
  const open =
    config.credentials.length > 0
      ? ''
      : 'no credentials are configured: whoever reaches this address on this machine is a host and may name any agent\n';
  const passed = built.routes
    .flatMap((route) => route.pass.map((path) => `passed unchecked on \`${route.name}\`: ${path}\n`))
    .join('');
  return `${renderProblems(warnings)}${open}${passed}toolgate listens on ${url} (${counts}, config ${config.file})\n`;
}

function followFiles(running: RunningGateway, log: Log): ConfigWatch {
  const watch = watchConfig(filesOf(running.whole()), () => {
    void reload(running, log, watch);
  });
  return watch;
}

async function reload(running: RunningGateway, log: Log, watch: ConfigWatch | undefined): Promise<void> {
  try {
    const problems = await running.reload();
    if (problems.length > 0) process.stderr.write(renderProblems(problems));
    if (hasErrors(problems)) process.stderr.write('the configuration has faults; the old one stays in force\n');
    else {
      watch?.follow(filesOf(running.whole()));
      tell(running.whole(), `the configuration was reloaded (${running.whole().built.catalogue.tools.size} tools)\n`);
    }
  } catch (error) {
    log.error({ err: error }, 'the reload failed; the old configuration stays in force');
  }
}

/** How the process is told what to do, as other servers are. */
function onSignals(running: RunningGateway, log: Log, lameDuckMs: number, watch: ConfigWatch | undefined): void {
  process.on('SIGHUP', () => void reload(running, log, watch));
  process.on('SIGUSR2', () => {
    running.gateway.audit.reopen().then(
      () => log.info('the audit log was reopened'),
      (error: unknown) => log.error({ err: error }, 'the audit log could not be reopened'),
    );
  });
  let ending = false;
  const end = (signal: NodeJS.Signals): void => {
    if (ending) {
      process.stderr.write('ended at once: calls under way may be left without a known outcome\n');
      process.exit(1);
    }
    ending = true;
    log.info({ signal }, 'ending: accepted calls are finished first; a second signal ends at once');
    watch?.close();
    running.close({ lameDuckMs }).then(
      () => process.exit(0),
      (error: unknown) => {
        log.fatal({ err: error }, 'the gateway did not end cleanly');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
}

function readDuration(text: string): number {
  try {
    return parseDurationMs(text);
  } catch {
    throw new CliFault(2, `\`${text}\` is no time; say \`5s\` or \`500ms\``);
  }
}
