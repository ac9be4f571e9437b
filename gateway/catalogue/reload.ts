import type { Config } from '../config/config.ts';
import type { LoadOptions } from '../config/load.ts';
import { type ConfigPath, hasErrors, type Problem, ProblemLog } from '../config/problem.ts';
import type { BuiltCatalogue, CatalogueDeps } from './build.ts';
import { loadGateway } from './load-gateway.ts';

/** A configuration in use. */
export interface InUse {
  readonly config: Config;
  readonly built: BuiltCatalogue;
}

/** What a reload comes to: the whole next configuration, or none and why. */
export interface Reloaded {
  readonly next?: InUse;
  readonly problems: readonly Problem[];
}

/** What a process is bound to from its start, and where the configuration says it. */
const FIXED: readonly { readonly path: ConfigPath; readonly of: (config: Config) => unknown }[] = [
  { path: ['listen'], of: ({ listen }) => [listen.host, listen.port, listen.tls !== undefined] },
  // Whether clients must show a certificate is settled when the listener is made.
  { path: ['listen', 'tls'], of: ({ listen }) => listen.tls?.clientCaFile !== undefined },
  { path: ['tenant'], of: ({ tenant }) => tenant },
  { path: ['audience'], of: ({ audience }) => audience },
  { path: ['keys', 'id'], of: ({ keys }) => keys.id },
  { path: ['keys', 'signing'], of: ({ keys }) => keys.signingFile },
  { path: ['store'], of: ({ store: { target } }) => ('file' in target ? target.file : target.url.digest()) },
  { path: ['store', 'encryption_key'], of: ({ store }) => [...(store.encryptionKey ?? [])] },
  { path: ['audit', 'file'], of: ({ audit }) => audit.file },
  { path: ['workers'], of: ({ workers }) => workers },
];

/**
 * Reads the configuration of `current` again. Either the whole of it is good and comes back as `next`, or nothing is:
 * a fault, or a word that a running process cannot take on, leaves `current` as it is. What triggers a reload and what
 * swaps is the caller's.
 */
export async function reload(current: InUse, options: LoadOptions, deps: CatalogueDeps): Promise<Reloaded> {
  const { loaded, problems } = await loadGateway(current.config.file, options, deps);
  if (loaded === undefined) return { problems };
  const log = new ProblemLog(loaded.config.positionOf);
  log.add(problems);
  for (const { path, of } of FIXED) {
    if (JSON.stringify(of(current.config)) === JSON.stringify(of(loaded.config))) continue;
    log.error(
      'needs_restart',
      path,
      `\`${path.join('.')}\` changes with a restart alone; put it back, or restart the gateway`,
    );
  }
  return hasErrors(log.problems) ? { problems: log.problems } : { next: loaded, problems: log.problems };
}
