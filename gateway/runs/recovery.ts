import type { Gateway } from '../gateway.ts';
import type { ClaimRecord, RunRecord } from '../store/port.ts';
import { recoverClaim } from './recover-claim.ts';

/** Claims that are ended side by side: some are sent again, and wait for their backend. */
const SIDE_BY_SIDE = 16;
const LISTED = 500;
/** How long a sweep goes on in one turn. */
const SWEEP_MS = 2_000;

/**
 * What goes on beside the calls: leases are renewed, claims of owners that have gone are ended, and what is past its
 * keeping is deleted. Every replica does all of it; what is taken is taken by one.
 */
export class Recovery {
  readonly #gateway: Gateway;
  #renewing: NodeJS.Timeout | undefined;
  #turns: NodeJS.Timeout | undefined;
  #turn: Promise<void> = Promise.resolve();

  constructor(gateway: Gateway) {
    this.#gateway = gateway;
  }

  /** Begins, with what the process before this one left. */
  start(): void {
    // A third of the lease: two renewals may be missed before anybody else may take what is at work here.
    const everyMs = this.#gateway.leaseMs / 3;
    this.#renewing = setInterval(() => void this.#guard('leases are not renewed', () => this.#renew()), everyMs);
    this.#renewing.unref();
    this.#next(0, () => this.#first());
  }

  /** Resolves when the turn that is under way has ended. */
  async stop(): Promise<void> {
    clearTimeout(this.#turns);
    await this.#turn;
    clearInterval(this.#renewing);
  }

  #next(afterMs: number, work: () => Promise<void>): void {
    this.#turns = setTimeout(() => {
      this.#turn = this.#guard('what others left is not looked at', work).then(() => {
        if (!this.#gateway.stopping.aborted) this.#next(this.#gateway.leaseMs / 3, () => this.#again());
      });
    }, afterMs);
    this.#turns.unref();
  }

  async #guard(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#gateway.log.warn({ err: error }, `${what} now; tried again`);
    }
  }

  async #renew(): Promise<void> {
    const { store, replica, leaseMs } = this.#gateway;
    await store.renewLeases(replica, this.#gateway.now() + leaseMs);
  }

  /** Nobody else may use a SQLite file, or the audit log of the same name: what they left is at once free to be ended. */
  async #first(): Promise<void> {
    const { store, audit, replica } = this.#gateway;
    const isLeft = (owner: string | undefined): boolean =>
      owner !== undefined && owner !== replica && (store.kind === 'sqlite' || owner.startsWith(`${audit.replica}~`));
    const claims = await this.#openClaims((claim) => isLeft(claim.owner));
    const runs = await store.listRuns(['failed', 'undoing'], LISTED);
    for (const run of runs) if (isLeft(run.owner)) await this.#free(run);
    this.#gateway.undoWork.ring();
    await endAll(this.#gateway, claims);
    await this.#again();
  }

  async #again(): Promise<void> {
    const { store, replica, leaseMs, flights } = this.#gateway;
    await endAll(this.#gateway, await this.#openClaims(({ owner, link }) => owner === replica && !flights.has(link)));
    for (;;) {
      const now = this.#gateway.now();
      const lapsed = await store.takeLapsedClaims(replica, now, now + leaseMs, LISTED);
      await endAll(this.#gateway, lapsed);
      if (lapsed.length < LISTED || this.#gateway.stopping.aborted) break;
    }
    await this.#sweep();
  }

  async #openClaims(isWanted: (claim: ClaimRecord) => boolean): Promise<readonly ClaimRecord[]> {
    const { store } = this.#gateway;
    const claimed = await store.listClaims('claimed', LISTED);
    const sending = await store.listClaims('sending', LISTED);
    return [...claimed, ...sending].filter((claim) => claim.runBy === 'gateway' && isWanted(claim));
  }

  async #free(run: RunRecord): Promise<void> {
    const updatedAtMs = this.#gateway.now();
    await this.#gateway.commit([{ op: 'touch_run', run: { ...run, leaseUntilMs: 0, updatedAtMs }, from: [run.state] }]);
  }

  async #sweep(): Promise<void> {
    const { store, audit, loaded } = this.#gateway;
    const { idempotencyKeepMs: claimsMs, sessions } = loaded;
    await this.#gateway.commit([{ op: 'outbox_written', replica: audit.replica, n: audit.durableUpTo }]);
    const keep = { claimsMs, sessionsMs: Math.max(sessions.carryMs, claimsMs) };
    const until = this.#gateway.now() + SWEEP_MS;
    while (this.#gateway.now() < until && !this.#gateway.stopping.aborted) {
      if ((await store.sweep(this.#gateway.now(), keep)) === 0) return;
    }
  }
}

async function endAll(gateway: Gateway, claims: readonly ClaimRecord[]): Promise<void> {
  const waiting = [...claims];
  const next = async (): Promise<void> => {
    for (let claim = waiting.shift(); claim !== undefined; claim = waiting.shift()) await recoverClaim(gateway, claim);
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, next));
}
