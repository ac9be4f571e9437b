import { renderProblems } from '../config/problem.ts';
import { type ConfigWatch, watchConfig } from '../config/watch.ts';
import type { Log } from '../log.ts';
import type { Serving } from '../serve/serving.ts';
import { filesOf, type WholeConfig } from '../serve/whole-config.ts';

export interface FollowOptions {
  readonly log: Log;
  readonly lameDuckMs: number;
  /** Reload by itself when files change. */
  readonly watch: boolean;
}

/** Follows signals and files from now on, and tells people that the gateway takes calls. */
export async function follow(serving: Serving, options: FollowOptions): Promise<void> {
  const watch = options.watch ? followFiles(serving, options.log) : undefined;
  onSignals(serving, options, watch);
  await watch?.ready;
  // Last: whoever reads it may change a file or send a signal at once.
  tell(serving.whole(), renderStart(serving));
}

/** Standard output is the audit log's, where it goes there; what people read then goes to standard error. */
function tell({ config }: WholeConfig, text: string): void {
  (config.audit.file === 'stdout' ? process.stderr : process.stdout).write(text);
}

function renderStart({ url, whole }: Serving): string {
  const { config, built, warnings } = whole();
  const tools = built.catalogue.tools.size;
  const routes = built.routes.length;
  const counts = `${tools} ${tools === 1 ? 'tool' : 'tools'} on ${routes} ${routes === 1 ? 'route' : 'routes'}`;
  const workers = config.workers === 1 ? '' : `, ${config.workers} workers`;
  const open =
    config.credentials.length > 0
      ? ''
      : 'no credentials are configured: whoever reaches this address on this machine is a host and may name any agent\n';
  const passed = built.routes
    .flatMap((route) => route.pass.map((path) => `passed unchecked on \`${route.name}\`: ${path}\n`))
    .join('');
  return `${renderProblems(warnings)}${open}${passed}toolgate listens on ${url} (${counts}${workers}, config ${config.file})\n`;
}

function followFiles(serving: Serving, log: Log): ConfigWatch {
  const watch = watchConfig(filesOf(serving.whole()), () => {
    void reload(serving, log, watch);
  });
  return watch;
}

async function reload(serving: Serving, log: Log, watch: ConfigWatch | undefined): Promise<void> {
  try {
    const { taken, text } = await serving.reload();
    process.stderr.write(text);
    if (!taken) process.stderr.write('the configuration has faults; the old one stays in force\n');
    else {
      watch?.follow(filesOf(serving.whole()));
      tell(serving.whole(), `the configuration was reloaded (${serving.whole().built.catalogue.tools.size} tools)\n`);
    }
  } catch (error) {
    log.error({ err: error }, 'the reload failed; the old configuration stays in force');
  }
}

/** How the process is told what to do, as other servers are. */
function onSignals(serving: Serving, { log, lameDuckMs }: FollowOptions, watch: ConfigWatch | undefined): void {
  process.on('SIGHUP', () => void reload(serving, log, watch));
  process.on('SIGUSR2', () => {
    serving.reopen().then(
      () => log.info('the audit log was reopened'),
      (error: unknown) => log.error({ err: error }, 'the audit log could not be reopened'),
    );
  });
  let ending = false;
  const end = (signal: NodeJS.Signals): void => {
    if (ending) {
      process.stderr.write('ended at once: calls under way may be left without a known outcome\n');
      serving.kill();
      process.exit(1);
    }
    ending = true;
    log.info({ signal }, 'ending: accepted calls are finished first; a second signal ends at once');
    watch?.close();
    serving.close(lameDuckMs).then(
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
