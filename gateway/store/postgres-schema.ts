/**
 * Migrations of the `toolgate` schema in order; `schema_version` counts those that were applied. One that was released
 * is never edited: a change is a further one. The functions are put anew by every migration run, since they belong to
 * the newest schema.
 */
export const POSTGRES_MIGRATIONS: readonly string[] = [
  `
CREATE TABLE meta (name text PRIMARY KEY, value bytea NOT NULL);

CREATE TABLE sessions (
  sid text PRIMARY KEY, issuer text NOT NULL, caller text NOT NULL, session text NOT NULL, mode text NOT NULL,
  nonce text NOT NULL, audience text NOT NULL, head_step bigint, head_link text, head_report text NOT NULL,
  late_reports text, view text NOT NULL, version bigint NOT NULL, frozen text, opened_at_ms bigint NOT NULL,
  used_at_ms bigint NOT NULL, used_hour bigint NOT NULL, allowed_at_ms bigint, UNIQUE (issuer, caller, session)
) WITH (fillfactor = 70);
CREATE INDEX sessions_live ON sessions (issuer, caller, used_hour);
CREATE INDEX sessions_used ON sessions (used_hour);

CREATE TABLE swept (sid text PRIMARY KEY);

CREATE TABLE steps (
  sid text NOT NULL, step bigint NOT NULL, link text NOT NULL, body text NOT NULL, token text, outcome text, result text,
  seen integer NOT NULL, forwarded integer NOT NULL, fields text, undo_arguments bytea, undo_allowed integer NOT NULL,
  late integer NOT NULL DEFAULT 0, frozen_outcome text, frozen_result text, PRIMARY KEY (sid, step)
) WITH (fillfactor = 85);

CREATE TABLE watched (
  sid text NOT NULL, tool text NOT NULL, step bigint NOT NULL, arguments bytea NOT NULL, result bytea NOT NULL,
  PRIMARY KEY (sid, tool, step)
);

CREATE TABLE claims (
  link text PRIMARY KEY, scope_key text UNIQUE, fingerprint text NOT NULL, sid text NOT NULL, step bigint NOT NULL,
  tool text NOT NULL, caller text NOT NULL, agent text NOT NULL, run text, undoes bigint, writes integer NOT NULL,
  run_by text NOT NULL, state text NOT NULL, upstream_key text, owner text NOT NULL, fence bigint NOT NULL,
  lease_until_ms bigint NOT NULL, created_at_ms bigint NOT NULL, settled_at_ms bigint, why text, answer_kind text,
  answer_status integer, answer_type text, answer_body bytea, request bytea, n bigint GENERATED ALWAYS AS IDENTITY
) WITH (fillfactor = 70);
CREATE INDEX claims_open ON claims (created_at_ms) WHERE settled_at_ms IS NULL;
CREATE INDEX claims_settled ON claims (settled_at_ms) WHERE settled_at_ms IS NOT NULL;

CREATE TABLE confirmations (
  id text PRIMARY KEY, sid text NOT NULL, session text NOT NULL, caller text NOT NULL, mode text NOT NULL,
  point text NOT NULL, step bigint NOT NULL, link text NOT NULL, tool text NOT NULL, agent text NOT NULL,
  arguments text NOT NULL, shown text NOT NULL, expires_ms bigint NOT NULL, state text NOT NULL,
  call_digest text NOT NULL, asked text NOT NULL, display bytea NOT NULL, approver text, note text,
  created_at_ms bigint NOT NULL, decided_at_ms bigint, n bigint GENERATED ALWAYS AS IDENTITY
);
CREATE INDEX confirmations_call ON confirmations (sid, call_digest);
CREATE INDEX confirmations_state ON confirmations (state, created_at_ms);
CREATE INDEX confirmations_expiry ON confirmations (expires_ms);

CREATE TABLE receipts (
  issuer text NOT NULL, caller text NOT NULL, session text NOT NULL, step bigint NOT NULL, link text NOT NULL,
  until_ms bigint NOT NULL, PRIMARY KEY (issuer, caller, session, step)
);
CREATE INDEX receipts_until ON receipts (until_ms);

CREATE TABLE holds (
  link text NOT NULL, bucket text NOT NULL, amount numeric NOT NULL, at_ms bigint NOT NULL, state text NOT NULL,
  sliding integer NOT NULL, until_ms bigint NOT NULL, PRIMARY KEY (link, bucket)
);
CREATE INDEX holds_window ON holds (bucket, at_ms) INCLUDE (amount) WHERE sliding = 1;
CREATE INDEX holds_until ON holds (until_ms) WHERE sliding = 1;

CREATE TABLE counters (
  bucket text PRIMARY KEY, settled numeric NOT NULL, held numeric NOT NULL, until_ms bigint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX counters_until ON counters (until_ms);

CREATE TABLE runs (
  caller text NOT NULL, run text NOT NULL, sid text NOT NULL, agent text NOT NULL, state text NOT NULL, why text,
  remains text, owner text, lease_until_ms bigint, updated_at_ms bigint NOT NULL, PRIMARY KEY (caller, run)
);
CREATE INDEX runs_state ON runs (state, updated_at_ms);
CREATE INDEX runs_session ON runs (sid);

CREATE TABLE undos (
  caller text NOT NULL, run text NOT NULL, step bigint NOT NULL, tool text NOT NULL, undo_tool text NOT NULL,
  arguments bytea, state text NOT NULL, round bigint NOT NULL, attempts bigint NOT NULL, due_at_ms bigint NOT NULL,
  why text, PRIMARY KEY (caller, run, step)
);

CREATE TABLE outbox (
  replica text NOT NULL, n bigint NOT NULL, line text NOT NULL, PRIMARY KEY (replica, n)
);
`,
  // What is counted of one session goes with it; what is held in a bucket is found by the bucket.
  `
ALTER TABLE counters ADD COLUMN sid text;
CREATE INDEX counters_session ON counters (sid) WHERE sid IS NOT NULL;
CREATE INDEX holds_counted ON holds (bucket) WHERE sliding = 0;
`,
];
