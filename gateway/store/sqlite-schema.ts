/**
 * Migrations of the SQLite file in order; `user_version` counts those that were applied. One that was released is never
 * edited: a change is a further one.
 *
 * What is written at every call stands in rowid tables, whose rows are appended: the commits of a group then share the
 * page that they write. Indexes are partial, or on columns that do not change, so that moving a claim or a session from
 * state to state rewrites its row and nothing else.
 */
export const SQLITE_MIGRATIONS: readonly string[] = [
  `
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
  sid TEXT NOT NULL UNIQUE, issuer TEXT NOT NULL, caller TEXT NOT NULL, session TEXT NOT NULL,
  mode TEXT NOT NULL, nonce TEXT NOT NULL, audience TEXT NOT NULL, head_step INTEGER, head_link TEXT,
  head_report TEXT NOT NULL, late_reports TEXT, view TEXT NOT NULL, version INTEGER NOT NULL, frozen TEXT,
  opened_at_ms INTEGER NOT NULL, used_at_ms INTEGER NOT NULL, used_hour INTEGER NOT NULL, allowed_at_ms INTEGER,
  UNIQUE (issuer, caller, session)
) STRICT;
CREATE INDEX sessions_live ON sessions (issuer, caller, used_hour);
CREATE INDEX sessions_used ON sessions (used_hour);

CREATE TABLE swept (sid TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

CREATE TABLE steps (
  sid TEXT NOT NULL, step INTEGER NOT NULL, link TEXT NOT NULL, body TEXT NOT NULL, token TEXT, outcome TEXT,
  result TEXT, seen INTEGER NOT NULL, forwarded INTEGER NOT NULL, fields TEXT, undo_arguments ANY,
  undo_allowed INTEGER NOT NULL, late INTEGER NOT NULL DEFAULT 0, frozen_outcome TEXT, frozen_result TEXT,
  UNIQUE (sid, step)
) STRICT;

CREATE TABLE watched (
  sid TEXT NOT NULL, tool TEXT NOT NULL, step INTEGER NOT NULL, arguments ANY NOT NULL, result ANY NOT NULL,
  UNIQUE (sid, tool, step)
) STRICT;

CREATE TABLE claims (
  link TEXT NOT NULL UNIQUE, scope_key TEXT, fingerprint TEXT NOT NULL, sid TEXT NOT NULL, step INTEGER NOT NULL,
  tool TEXT NOT NULL, caller TEXT NOT NULL, agent TEXT NOT NULL, run TEXT, undoes INTEGER, writes INTEGER NOT NULL,
  run_by TEXT NOT NULL, state TEXT NOT NULL, upstream_key TEXT, owner TEXT NOT NULL, fence INTEGER NOT NULL,
  lease_until_ms INTEGER NOT NULL, created_at_ms INTEGER NOT NULL, settled_at_ms INTEGER, why TEXT,
  answer_kind TEXT, answer_status INTEGER, answer_type TEXT, answer_body ANY, request ANY
) STRICT;
CREATE UNIQUE INDEX claims_scope ON claims (scope_key) WHERE scope_key IS NOT NULL;
CREATE INDEX claims_open ON claims (created_at_ms) WHERE settled_at_ms IS NULL;
CREATE INDEX claims_settled ON claims (settled_at_ms) WHERE settled_at_ms IS NOT NULL;

CREATE TABLE confirmations (
  id TEXT NOT NULL UNIQUE, sid TEXT NOT NULL, session TEXT NOT NULL, caller TEXT NOT NULL, mode TEXT NOT NULL,
  point TEXT NOT NULL, step INTEGER NOT NULL, link TEXT NOT NULL, tool TEXT NOT NULL, agent TEXT NOT NULL,
  arguments TEXT NOT NULL, shown TEXT NOT NULL, expires_ms INTEGER NOT NULL, state TEXT NOT NULL,
  call_digest TEXT NOT NULL, asked TEXT NOT NULL, display ANY NOT NULL, approver TEXT, note TEXT,
  created_at_ms INTEGER NOT NULL, decided_at_ms INTEGER
) STRICT;
CREATE INDEX confirmations_call ON confirmations (sid, call_digest);
CREATE INDEX confirmations_state ON confirmations (state, created_at_ms);
CREATE INDEX confirmations_expiry ON confirmations (expires_ms);

CREATE TABLE receipts (
  issuer TEXT NOT NULL, caller TEXT NOT NULL, session TEXT NOT NULL, step INTEGER NOT NULL, link TEXT NOT NULL,
  until_ms INTEGER NOT NULL, PRIMARY KEY (issuer, caller, session, step)
) STRICT, WITHOUT ROWID;
CREATE INDEX receipts_until ON receipts (until_ms);

CREATE TABLE holds (
  link TEXT NOT NULL, bucket TEXT NOT NULL, amount TEXT NOT NULL, micros INTEGER, at_ms INTEGER NOT NULL,
  state TEXT NOT NULL, sliding INTEGER NOT NULL, until_ms INTEGER NOT NULL, PRIMARY KEY (link, bucket)
) STRICT, WITHOUT ROWID;
CREATE INDEX holds_window ON holds (bucket, at_ms, micros) WHERE sliding = 1;
CREATE INDEX holds_until ON holds (until_ms) WHERE sliding = 1;

CREATE TABLE counters (
  bucket TEXT PRIMARY KEY, settled TEXT NOT NULL, held TEXT NOT NULL, until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX counters_until ON counters (until_ms);

CREATE TABLE runs (
  caller TEXT NOT NULL, run TEXT NOT NULL, sid TEXT NOT NULL, agent TEXT NOT NULL, state TEXT NOT NULL, why TEXT,
  remains TEXT, owner TEXT, lease_until_ms INTEGER, updated_at_ms INTEGER NOT NULL, PRIMARY KEY (caller, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_state ON runs (state, updated_at_ms);
CREATE INDEX runs_session ON runs (sid);

CREATE TABLE undos (
  caller TEXT NOT NULL, run TEXT NOT NULL, step INTEGER NOT NULL, tool TEXT NOT NULL, undo_tool TEXT NOT NULL,
  arguments ANY, state TEXT NOT NULL, round INTEGER NOT NULL, attempts INTEGER NOT NULL, due_at_ms INTEGER NOT NULL,
  why TEXT, PRIMARY KEY (caller, run, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
  replica TEXT NOT NULL, n INTEGER NOT NULL, line TEXT NOT NULL, PRIMARY KEY (replica, n)
) STRICT, WITHOUT ROWID;
`,
  // What is counted of one session goes with it; what is held in a bucket is found by the bucket.
  `
ALTER TABLE counters ADD COLUMN sid TEXT;
CREATE INDEX counters_session ON counters (sid) WHERE sid IS NOT NULL;
CREATE INDEX holds_counted ON holds (bucket) WHERE sliding = 0;
`,
];

/** "TlGt": tells a Toolgate store from any other SQLite file. */
export const SQLITE_APPLICATION_ID = 0x546c4774;
