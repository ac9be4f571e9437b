import { randomBytes } from 'node:crypto';
import { encodeBase64url } from '../../receipts/base64url.ts';
import type { SigningKey } from '../../receipts/crypto.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { parseSigningKey, renderPublicKeyPem } from '../../receipts/keys.ts';
import { loadGateway } from '../catalogue/load-gateway.ts';
import { hasErrors, renderProblems } from '../config/problem.ts';
import { catalogueDeps } from '../load/catalogue-deps.ts';
import { loadLicence } from '../load/licence.ts';
import { makeLoaded } from '../load/make-loaded.ts';
import { loadRulebook } from '../load/rulebook.ts';
import type { Loaded } from '../loaded.ts';
import { LocalCounts } from './local-counts.ts';
import { LocalSession } from './local-session.ts';

export interface LocalCheckerOptions {
  /** The gateway's configuration, or a copy of it: what is checked here is checked as it would be there. */
  readonly configFile: string;
  /** Who signs: the id under `keys.issuers` of the gateway that the receipts are for. */
  readonly issuer: string;
  /** Text of the issuer's PKCS#8 PEM file, as `toolgate keys new` makes it. */
  readonly signingKey: string;
  /** For `${NAME}` in the configuration; the process's own where absent. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Milliseconds since 1970; the clock's where absent. */
  readonly now?: () => number;
}

/** Why there is no checker, code `config_refused`: the message tells every fault of the configuration. */
export class ConfigFault extends Error {
  readonly code = 'config_refused';

  constructor(faults: string) {
    super(`the configuration has faults:\n${faults}`);
    this.name = 'ConfigFault';
  }
}

/**
 * The check in a process of the agent's own, with no gateway asked: the same pure policy, under a key of its own. What it
 * allows is worth as much as the gateway's `keys.issuers` says: receipts for the agents and tools that are listed there.
 */
export class LocalChecker {
  readonly issuer: string;
  readonly #loaded: Loaded;
  readonly #signing: SigningKey;
  readonly #counts = new LocalCounts();
  readonly #now: () => number;

  private constructor(loaded: Loaded, signing: SigningKey, issuer: string, now: () => number) {
    this.#loaded = loaded;
    this.#signing = signing;
    this.issuer = issuer;
    this.#now = now;
  }

  /** Loads a configuration with its catalogue and rulebook. Throws `ConfigFault`, or `KeyFault` for a key that is none. */
  static async load(options: LocalCheckerOptions): Promise<LocalChecker> {
    const signing = nodeCrypto.signingKey(parseSigningKey(options.signingKey));
    const { loaded, problems } = await loadGateway(
      options.configFile,
      { env: options.env ?? process.env },
      catalogueDeps(),
    );
    if (loaded === undefined) throw refused(problems);
    const rulebook = await loadRulebook(loaded.config, loaded.built);
    const { licence, problems: ofLicence } = await loadLicence(nodeCrypto, loaded.config);
    const faults = [...rulebook.problems, ...ofLicence];
    if (hasErrors(faults)) throw refused(faults);
    const services = { crypto: nodeCrypto, signing, upstreams: new Map(), approveAt: '', licence };
    const made = makeLoaded(loaded.config, loaded.built, { ...services, rulebook: rulebook.record });
    return new LocalChecker(made, signing, options.issuer, options.now ?? Date.now);
  }

  /** The public half of the key as PEM text: what `public_key` under `keys.issuers` is. */
  get publicKey(): string {
    return renderPublicKeyPem(this.#signing.publicBytes);
  }

  /** A session of an agent, whose history is kept here; a random name where none is given. */
  session(agent: string, id: string = encodeBase64url(randomBytes(16))): LocalSession {
    return new LocalSession({
      loaded: this.#loaded,
      signing: this.#signing,
      issuer: this.issuer,
      counts: this.#counts,
      now: this.#now,
      nonce: randomBytes(16),
      agent,
      id,
    });
  }
}

function refused(problems: Parameters<typeof renderProblems>[0]): ConfigFault {
  return new ConfigFault(renderProblems(problems.filter(({ severity }) => severity === 'error')));
}
