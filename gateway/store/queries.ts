/** A column that may be sealed: where it stands in the row, its name for the seal, and the columns of its row's key. */
export interface SealedColumn {
  readonly at: number;
  readonly column: string;
  readonly key: readonly number[];
}

export interface Query {
  readonly sql: string;
  readonly sealed?: readonly SealedColumn[];
}

const SESSION = `sid, issuer, caller, session, mode, nonce, audience, head_step, head_link, head_report, late_reports,
  view, version, frozen, opened_at_ms, used_at_ms`;
const STEP = `sid, step, link, body, token, outcome, result, seen, forwarded, fields, undo_arguments, undo_allowed,
  late, frozen_outcome, frozen_result`;
const CLAIM = `link, scope_key, fingerprint, sid, step, tool, caller, agent, run, undoes, writes, run_by, state,
  upstream_key, owner, fence, lease_until_ms, created_at_ms, settled_at_ms, why, answer_kind, answer_status,
  answer_type, answer_body, request`;
const CONFIRMATION = `id, sid, session, caller, mode, point, step, link, tool, agent, arguments, shown, expires_ms, state,
  call_digest, asked, display, approver, note, created_at_ms, decided_at_ms`;
const RUN = 'caller, run, sid, agent, state, why, remains, owner, lease_until_ms, updated_at_ms';
const UNDO = 'caller, run, step, tool, undo_tool, arguments, state, round, attempts, due_at_ms, why';

/** Names of the columns that are sealed where the store has an encryption key; they bind each value to its place. */
export const SEALED = {
  undoArguments: 'steps.undo_arguments',
  watchedArguments: 'watched.arguments',
  watchedResult: 'watched.result',
  answerBody: 'claims.answer_body',
  request: 'claims.request',
  display: 'confirmations.display',
  undo: 'undos.arguments',
} as const;

const SEALED_STEP: readonly SealedColumn[] = [{ at: 10, column: SEALED.undoArguments, key: [0, 1] }];
const SEALED_CLAIM: readonly SealedColumn[] = [
  { at: 23, column: SEALED.answerBody, key: [0] },
  { at: 24, column: SEALED.request, key: [0] },
];
const SEALED_CONFIRMATION: readonly SealedColumn[] = [{ at: 16, column: SEALED.display, key: [0] }];

/** The row's key as the seal binds it; the parts of a key hold no NUL. */
export function rowKey(...parts: readonly unknown[]): string {
  return parts.join('\0');
}

/** Queries that only read. Lists come as the text of a JSON array. */
export type QueryName =
  | 'findSession'
  | 'findSessionById'
  | 'findSteps'
  | 'readEntries'
  | 'viewsOfCaller'
  | 'findWatched'
  | 'findClaimByLink'
  | 'findClaimByScopeKey'
  | 'listOpenClaims'
  | 'listSettledClaims'
  | 'findConfirmation'
  | 'findConfirmationOfCall'
  | 'listConfirmations'
  | 'findReceipts'
  | 'findRun'
  | 'listRuns'
  | 'listUndos'
  | 'readCounters'
  | 'readHolds'
  | 'countOpen'
  | 'readOutbox';

export type Dialect = 'sqlite' | 'postgres';

function makeQueries(dialect: Dialect): Record<QueryName, Query> {
  const texts = (parameter: string): string =>
    dialect === 'sqlite'
      ? `(SELECT value FROM json_each(${parameter}))`
      : `(SELECT value FROM json_array_elements_text(${parameter}::json))`;
  const numbers = (parameter: string): string =>
    dialect === 'sqlite'
      ? `(SELECT value FROM json_each(${parameter}))`
      : `(SELECT value::bigint FROM json_array_elements_text(${parameter}::json))`;
  // The order in which rows came: a row's number in SQLite, a sequence in PostgreSQL.
  const n = dialect === 'sqlite' ? 'rowid' : 'n';
  // Amounts are texts in SQLite; a numeric's text carries the scale of whatever was added to it.
  const decimal = (column: string): string => (dialect === 'sqlite' ? column : `trim_scale(${column})::text`);
  const headOf = '(SELECT head_step FROM sessions WHERE sid = ?1)';
  return {
    findSession: { sql: `SELECT ${SESSION} FROM sessions WHERE issuer = ?1 AND caller = ?2 AND session = ?3` },
    findSessionById: { sql: `SELECT ${SESSION} FROM sessions WHERE sid = ?1` },
    findSteps: {
      sql: `SELECT ${STEP}, ${headOf} FROM steps WHERE sid = ?1 AND step IN ${numbers('?2')} ORDER BY step`,
      sealed: SEALED_STEP,
    },
    readEntries: { sql: `SELECT ${STEP}, ${headOf} FROM steps WHERE sid = ?1 ORDER BY step`, sealed: SEALED_STEP },
    viewsOfCaller: {
      sql: `SELECT view FROM sessions WHERE issuer = ?1 AND caller = ?2 AND used_hour >= ?4 AND allowed_at_ms >= ?3 AND sid <> ?5
        ORDER BY opened_at_ms, sid`,
    },
    findWatched: {
      sql: `SELECT sid, tool, step, arguments, result FROM watched WHERE sid = ?1 AND tool IN ${texts('?2')} ORDER BY step DESC`,
      sealed: [
        { at: 3, column: SEALED.watchedArguments, key: [0, 1, 2] },
        { at: 4, column: SEALED.watchedResult, key: [0, 1, 2] },
      ],
    },
    findClaimByLink: { sql: `SELECT ${CLAIM} FROM claims WHERE link = ?1`, sealed: SEALED_CLAIM },
    findClaimByScopeKey: { sql: `SELECT ${CLAIM} FROM claims WHERE scope_key = ?1`, sealed: SEALED_CLAIM },
    listOpenClaims: {
      sql: `SELECT ${CLAIM} FROM claims WHERE settled_at_ms IS NULL AND state = ?1 ORDER BY created_at_ms, ${n} LIMIT ?2`,
      sealed: SEALED_CLAIM,
    },
    listSettledClaims: {
      sql: `SELECT ${CLAIM} FROM claims WHERE settled_at_ms IS NOT NULL AND state = ?1 ORDER BY settled_at_ms, ${n} LIMIT ?2`,
      sealed: SEALED_CLAIM,
    },
    findConfirmation: { sql: `SELECT ${CONFIRMATION} FROM confirmations WHERE id = ?1`, sealed: SEALED_CONFIRMATION },
    findConfirmationOfCall: {
      sql: `SELECT ${CONFIRMATION} FROM confirmations WHERE sid = ?1 AND call_digest = ?2
        AND state IN ('pending', 'approved') ORDER BY created_at_ms DESC, ${n} DESC LIMIT 1`,
      sealed: SEALED_CONFIRMATION,
    },
    listConfirmations: {
      sql: `SELECT ${CONFIRMATION} FROM confirmations WHERE state = ?1 AND mode = 'held' AND (state <> 'pending' OR expires_ms > ?2)
        ORDER BY CASE WHEN state = 'pending' THEN created_at_ms ELSE -coalesce(decided_at_ms, created_at_ms) END, ${n} LIMIT ?3`,
      sealed: SEALED_CONFIRMATION,
    },
    findReceipts: {
      sql: `SELECT step, link FROM receipts WHERE issuer = ?1 AND caller = ?2 AND session = ?3 AND step <= ?4
        ORDER BY step DESC LIMIT ?5`,
    },
    findRun: { sql: `SELECT ${RUN} FROM runs WHERE caller = ?1 AND run = ?2` },
    listRuns: {
      sql: `SELECT ${RUN} FROM runs WHERE state IN ${texts('?1')} ORDER BY updated_at_ms, caller, run LIMIT ?2`,
    },
    listUndos: {
      sql: `SELECT ${UNDO} FROM undos WHERE caller = ?1 AND run = ?2 ORDER BY step DESC`,
      sealed: [{ at: 5, column: SEALED.undo, key: [0, 1, 2] }],
    },
    readCounters: {
      sql: `SELECT bucket, ${decimal('settled')}, ${decimal('held')} FROM counters WHERE bucket IN ${texts('?1')}`,
    },
    readHolds: {
      sql: `SELECT bucket, link, ${decimal('amount')}, at_ms, state FROM holds WHERE bucket = ?1 AND sliding = 1 AND at_ms >= ?2
        ORDER BY at_ms, link`,
    },
    countOpen: {
      sql: `SELECT 'claim', state, count(*) FROM claims WHERE settled_at_ms IS NULL GROUP BY state
        UNION ALL SELECT 'undo', state, count(*) FROM undos WHERE state <> 'compensated' GROUP BY state
        UNION ALL SELECT 'confirmation', mode, count(*) FROM confirmations
          WHERE state = 'pending' AND mode = 'held' AND expires_ms > ?1 GROUP BY mode`,
    },
    readOutbox: { sql: 'SELECT n, line FROM outbox WHERE replica = ?1 ORDER BY n LIMIT ?2' },
  };
}

/** Every query in the words of one database; parameters are `?1` for SQLite and `$1` for PostgreSQL. */
export function queriesOf(dialect: Dialect): Readonly<Record<QueryName, Query>> {
  const queries = makeQueries(dialect);
  if (dialect === 'sqlite') return queries;
  return Object.fromEntries(
    Object.entries(queries).map(([name, query]) => [name, { ...query, sql: query.sql.replaceAll('?', '$') }]),
  ) as Record<QueryName, Query>;
}

export { CLAIM as CLAIM_COLUMNS, RUN as RUN_COLUMNS, SEALED_CLAIM };
