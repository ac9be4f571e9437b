import type { Store } from '../../gateway/store/port.ts';
import { CLAIM_CASES } from './contract-claims.ts';
import { LIMIT_CASES } from './contract-limits.ts';
import { RUN_CASES } from './contract-runs.ts';
import { SESSION_CASES } from './contract-sessions.ts';
import { SWEEP_CASES } from './contract-sweep.ts';

/** What a case may use: a store that other cases use too, or one of its own for what looks at everything. */
interface Stores {
  readonly shared: Store;
  own(): Promise<Store>;
}

export interface Case {
  readonly title: string;
  readonly run: (stores: Stores) => Promise<void>;
}

/** What every adapter must do. */
export const CONTRACT: readonly Case[] = [
  ...SESSION_CASES,
  ...CLAIM_CASES,
  ...LIMIT_CASES,
  ...RUN_CASES,
  ...SWEEP_CASES,
];
