import type { WholeConfig } from './whole-config.ts';

/** A gateway that takes calls, of one process or of several. */
export interface Serving {
  readonly url: string;
  /** The config in use. */
  readonly whole: () => WholeConfig;
  /** Takes the files anew, all of them or none. Resolves with what there is to tell of them, for people. */
  reload(): Promise<{ readonly taken: boolean; readonly text: string }>;
  /** Opens the audit log again. */
  reopen(): Promise<void>;
  /** Takes calls for `lameDuckMs` more, lets the accepted ones end, and closes all. Rejects where that went wrong. */
  close(lameDuckMs: number): Promise<void>;
  /** Ends what would outlive this process. */
  kill(): void;
}
