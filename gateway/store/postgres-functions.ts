/**
 * What runs inside PostgreSQL. A group of commits crosses as one JSON array and is done by one call: one round trip, and
 * every precondition is looked at where its row lock is held. Operations stand in the codes and the order of values of
 * lower.ts; `v[i]` is the code, `v[i + 1]` its first value. Sealed columns come as base64.
 *
 * Preconditions are part of the statement that writes, or look after the lock is taken (READ COMMITTED looks again at a
 * row that it had to wait for), so that what held when a commit looked still holds when it is stored.
 */
export const POSTGRES_FUNCTIONS = `
CREATE OR REPLACE FUNCTION toolgate_operation(v text[], i integer) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  found_text text; found_sid text; found_state text; found_owner text; found_lease bigint; total numeric; was_late boolean;
BEGIN
CASE v[i]::integer
WHEN 2 THEN
  UPDATE sessions SET version = version + 1, head_step = coalesce(v[i+3]::bigint, head_step),
    head_link = coalesce(v[i+4], head_link), head_report = v[i+5], late_reports = v[i+6],
    allowed_at_ms = CASE WHEN view = v[i+7] THEN allowed_at_ms ELSE v[i+8]::bigint END,
    view = v[i+7], used_at_ms = v[i+8]::bigint, used_hour = v[i+9]::bigint
    WHERE sid = v[i+1] AND version = v[i+2]::bigint AND frozen IS NULL;
  IF NOT FOUND THEN
    SELECT frozen INTO found_text FROM sessions WHERE sid = v[i+1];
    RETURN CASE WHEN found_text IS NULL THEN 'session_moved' ELSE 'session_frozen' END;
  END IF;
WHEN 4 THEN
  INSERT INTO steps (sid, step, link, body, token, outcome, result, seen, forwarded, fields, undo_arguments, undo_allowed)
    VALUES (v[i+1], v[i+2]::bigint, v[i+3], v[i+4], v[i+5], v[i+6], v[i+7], v[i+8]::integer, v[i+9]::integer, v[i+10],
      decode(v[i+11], 'base64'), v[i+12]::integer) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN 'session_moved'; END IF;
WHEN 20 THEN
  INSERT INTO outbox (replica, n, line) VALUES (v[i+1], v[i+2]::bigint, v[i+3]);
WHEN 10 THEN
  UPDATE claims SET state = v[i+4], why = v[i+5], settled_at_ms = v[i+6]::bigint,
    request = CASE WHEN v[i+6] IS NULL THEN request END,
    answer_kind = coalesce(v[i+7], answer_kind),
    answer_status = CASE WHEN v[i+7] IS NULL THEN answer_status ELSE v[i+8]::integer END,
    answer_type = CASE WHEN v[i+7] IS NULL THEN answer_type ELSE v[i+9] END,
    answer_body = CASE WHEN v[i+7] IS NULL THEN answer_body ELSE decode(v[i+10], 'base64') END,
    scope_key = CASE WHEN v[i+4] = 'failed' AND v[i+7] IS NULL THEN NULL ELSE scope_key END
    WHERE link = v[i+1] AND fence = v[i+2]::bigint AND strpos(v[i+3], '|' || state || '|') > 0;
  IF NOT FOUND THEN RETURN 'claim_fenced'; END IF;
WHEN 22 THEN
  UPDATE claims SET state = 'sending', owner = v[i+4], fence = fence + 1, lease_until_ms = v[i+5]::bigint,
    settled_at_ms = NULL, why = NULL, run_by = 'gateway', request = coalesce(decode(v[i+6], 'base64'), request)
    WHERE link = v[i+1] AND fence = v[i+2]::bigint AND strpos(v[i+3], '|' || state || '|') > 0;
  IF NOT FOUND THEN RETURN 'claim_fenced'; END IF;
WHEN 9 THEN
  INSERT INTO claims (link, scope_key, fingerprint, sid, step, tool, caller, agent, run, undoes, writes, run_by, state,
    upstream_key, owner, fence, lease_until_ms, created_at_ms, settled_at_ms, why, answer_kind, answer_status,
    answer_type, answer_body, request)
    VALUES (v[i+1], v[i+2], v[i+3], v[i+4], v[i+5]::bigint, v[i+6], v[i+7], v[i+8], v[i+9], v[i+10]::bigint,
      v[i+11]::integer, v[i+12], v[i+13], v[i+14], v[i+15], v[i+16]::bigint, v[i+17]::bigint, v[i+18]::bigint,
      v[i+19]::bigint, v[i+20], v[i+21], v[i+22]::integer, v[i+23], decode(v[i+24], 'base64'), decode(v[i+25], 'base64'))
    ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN 'claim_exists'; END IF;
WHEN 6 THEN
  was_late := EXISTS (SELECT 1 FROM steps WHERE sid = v[i+1] AND step = v[i+2]::bigint + 1);
  UPDATE steps SET
    frozen_outcome = CASE WHEN was_late AND late = 0 THEN outcome ELSE frozen_outcome END,
    frozen_result = CASE WHEN was_late AND late = 0 THEN result ELSE frozen_result END,
    late = CASE WHEN was_late THEN 1 ELSE late END,
    outcome = v[i+3], result = coalesce(v[i+4], result), seen = greatest(seen, v[i+5]::integer),
    fields = coalesce(v[i+6], fields), undo_arguments = coalesce(decode(v[i+7], 'base64'), undo_arguments)
    WHERE sid = v[i+1] AND step = v[i+2]::bigint;
  IF NOT FOUND THEN RETURN 'session_moved'; END IF;
WHEN 14 THEN
  IF v[i+7] IS NULL THEN
    INSERT INTO counters AS c (bucket, settled, held, until_ms, sid)
      SELECT v[i+1], 0, v[i+3]::numeric, v[i+8]::bigint, v[i+9]
      WHERE v[i+3]::numeric <= v[i+5]::numeric OR EXISTS (SELECT 1 FROM counters WHERE bucket = v[i+1])
      ON CONFLICT (bucket) DO UPDATE SET held = c.held + excluded.held, until_ms = greatest(c.until_ms, excluded.until_ms)
      WHERE c.settled + c.held + excluded.held <= v[i+5]::numeric;
    IF NOT FOUND THEN RETURN 'limit_reached'; END IF;
  ELSE
    SELECT coalesce(sum(amount), 0) INTO total FROM holds WHERE bucket = v[i+1] AND sliding = 1 AND at_ms >= v[i+7]::bigint;
    IF total + v[i+3]::numeric > v[i+5]::numeric THEN RETURN 'limit_reached'; END IF;
  END IF;
  INSERT INTO holds AS h (bucket, link, amount, at_ms, state, sliding, until_ms)
    VALUES (v[i+1], v[i+2], v[i+3]::numeric, v[i+6]::bigint, 'held', (v[i+7] IS NOT NULL)::integer, v[i+8]::bigint)
    ON CONFLICT (link, bucket) DO UPDATE SET amount = h.amount + excluded.amount, at_ms = excluded.at_ms, state = 'held',
      until_ms = excluded.until_ms;
WHEN 15 THEN
  UPDATE holds SET state = 'settled' WHERE link = v[i+1] AND state = 'held' AND sliding = 1;
  WITH gone AS (DELETE FROM holds WHERE link = v[i+1] AND state = 'held' AND sliding = 0 RETURNING bucket, amount)
    UPDATE counters c SET held = c.held - gone.amount, settled = c.settled + gone.amount FROM gone WHERE c.bucket = gone.bucket;
WHEN 16 THEN
  WITH gone AS (DELETE FROM holds WHERE link = v[i+1] AND state = 'held' RETURNING bucket, amount, sliding)
    UPDATE counters c SET held = c.held - gone.amount FROM gone WHERE c.bucket = gone.bucket AND gone.sliding = 0;
WHEN 13 THEN
  INSERT INTO receipts (issuer, caller, session, step, link, until_ms)
    VALUES (v[i+1], v[i+2], v[i+3], v[i+4]::bigint, v[i+5], v[i+6]::bigint) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    SELECT link INTO found_text FROM receipts
      WHERE issuer = v[i+1] AND caller = v[i+2] AND session = v[i+3] AND step = v[i+4]::bigint;
    RETURN CASE WHEN found_text = v[i+5] THEN 'receipt_spent' ELSE 'receipt_forked' END;
  END IF;
WHEN 1 THEN
  IF EXISTS (SELECT 1 FROM sessions WHERE (issuer = v[i+2] AND caller = v[i+3] AND session = v[i+4]) OR sid = v[i+1]) THEN
    RETURN 'session_exists';
  END IF;
  IF (SELECT count(*) FROM (SELECT 1 FROM sessions WHERE issuer = v[i+2] AND caller = v[i+3]
      AND used_hour >= v[i+21]::bigint AND used_at_ms >= v[i+20]::bigint LIMIT v[i+19]::bigint) live) >= v[i+19]::bigint THEN
    RETURN 'too_many_sessions';
  END IF;
  INSERT INTO sessions (sid, issuer, caller, session, mode, nonce, audience, head_step, head_link, head_report,
    late_reports, view, version, frozen, opened_at_ms, used_at_ms, used_hour, allowed_at_ms)
    VALUES (v[i+1], v[i+2], v[i+3], v[i+4], v[i+5], v[i+6], v[i+7], v[i+8]::bigint, v[i+9], v[i+10], v[i+11], v[i+12],
      v[i+13]::bigint, v[i+14], v[i+15]::bigint, v[i+16]::bigint, v[i+17]::bigint, v[i+18]::bigint)
    ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN 'session_exists'; END IF;
WHEN 3 THEN
  UPDATE sessions SET version = version + 1, frozen = v[i+2] WHERE sid = v[i+1];
  IF NOT FOUND THEN RETURN 'session_moved'; END IF;
WHEN 5 THEN
  UPDATE steps SET token = v[i+3] WHERE sid = v[i+1] AND step = v[i+2]::bigint;
  IF NOT FOUND THEN RETURN 'session_moved'; END IF;
WHEN 7 THEN
  UPDATE steps SET undo_allowed = v[i+3]::integer WHERE sid = v[i+1] AND step = v[i+2]::bigint;
  IF NOT FOUND THEN RETURN 'session_moved'; END IF;
WHEN 8 THEN
  INSERT INTO watched (sid, tool, step, arguments, result)
    VALUES (v[i+1], v[i+2], v[i+3]::bigint, decode(v[i+4], 'base64'), decode(v[i+5], 'base64'))
    ON CONFLICT (sid, tool, step) DO UPDATE SET arguments = excluded.arguments, result = excluded.result;
  DELETE FROM watched WHERE sid = v[i+1] AND tool = v[i+2] AND step <= (SELECT step FROM watched
    WHERE sid = v[i+1] AND tool = v[i+2] ORDER BY step DESC LIMIT 1 OFFSET v[i+6]::bigint);
WHEN 11 THEN
  INSERT INTO confirmations (id, sid, session, caller, mode, point, step, link, tool, agent, arguments, shown, expires_ms,
    state, call_digest, asked, display, approver, note, created_at_ms, decided_at_ms)
    VALUES (v[i+1], v[i+2], v[i+3], v[i+4], v[i+5], v[i+6], v[i+7]::bigint, v[i+8], v[i+9], v[i+10], v[i+11], v[i+12],
      v[i+13]::bigint, v[i+14], v[i+15], v[i+16], decode(v[i+17], 'base64'), v[i+18], v[i+19], v[i+20]::bigint,
      v[i+21]::bigint);
WHEN 12 THEN
  UPDATE confirmations SET state = v[i+3], approver = coalesce(v[i+4], approver), note = coalesce(v[i+5], note),
    decided_at_ms = v[i+6]::bigint WHERE id = v[i+1] AND strpos(v[i+2], '|' || state || '|') > 0;
  IF NOT FOUND THEN
    SELECT state INTO found_text FROM confirmations WHERE id = v[i+1];
    RETURN CASE WHEN found_text = 'spent' THEN 'confirmation_spent' ELSE 'confirmation_state' END;
  END IF;
WHEN 17 THEN
  INSERT INTO runs (caller, run, sid, agent, state, why, remains, owner, lease_until_ms, updated_at_ms)
    VALUES (v[i+1], v[i+2], v[i+3], v[i+4], v[i+5], v[i+6], v[i+7], v[i+8], v[i+9]::bigint, v[i+10]::bigint)
    ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    SELECT sid, state, owner, lease_until_ms INTO found_sid, found_state, found_owner, found_lease
      FROM runs WHERE caller = v[i+1] AND run = v[i+2] FOR UPDATE;
    IF found_sid IS DISTINCT FROM v[i+3] THEN RETURN 'run_foreign'; END IF;
    IF strpos(v[i+11], '|' || found_state || '|') = 0 THEN RETURN 'run_state'; END IF;
    IF v[i+8] IS NOT NULL AND found_owner <> v[i+8] AND found_lease > v[i+10]::bigint THEN RETURN 'run_state'; END IF;
    UPDATE runs SET agent = v[i+4], state = v[i+5], why = v[i+6], remains = v[i+7], updated_at_ms = v[i+10]::bigint,
      owner = CASE WHEN v[i+8] IS NULL AND v[i+11] LIKE '%+' THEN owner ELSE v[i+8] END,
      lease_until_ms = CASE WHEN v[i+8] IS NULL AND v[i+11] LIKE '%+' THEN lease_until_ms ELSE v[i+9]::bigint END
      WHERE caller = v[i+1] AND run = v[i+2];
  END IF;
WHEN 18 THEN
  INSERT INTO undos (caller, run, step, tool, undo_tool, arguments, state, round, attempts, due_at_ms, why)
    VALUES (v[i+1], v[i+2], v[i+3]::bigint, v[i+4], v[i+5], decode(v[i+6], 'base64'), v[i+7], v[i+8]::bigint,
      v[i+9]::bigint, v[i+10]::bigint, v[i+11])
    ON CONFLICT (caller, run, step) DO UPDATE SET tool = excluded.tool, undo_tool = excluded.undo_tool,
      arguments = excluded.arguments, state = excluded.state, round = excluded.round, attempts = excluded.attempts,
      due_at_ms = excluded.due_at_ms, why = excluded.why;
WHEN 19 THEN
  UPDATE undos SET state = v[i+5], attempts = coalesce(v[i+6]::bigint, attempts),
    due_at_ms = coalesce(v[i+7]::bigint, due_at_ms), why = v[i+8]
    WHERE caller = v[i+1] AND run = v[i+2] AND step = v[i+3]::bigint AND strpos(v[i+4], '|' || state || '|') > 0;
  IF NOT FOUND THEN RETURN 'undo_state'; END IF;
WHEN 21 THEN
  DELETE FROM outbox WHERE replica = v[i+1] AND n <= v[i+2]::bigint;
END CASE;
RETURN NULL;
END $body$;

-- Commits of a group, each: number of values that follow, then for each operation how many values follow, its code and
-- the values. One that meets a conflict, or is refused, is taken back alone. Answers each with '', a conflict as
-- 'operation:reason', or '!reason'.
--
-- What many sessions share is locked before anything else, always in one order: the buckets (those named, and those that
-- the links hold in) and whoever opens a session. Two at once then never both take the last place, and two groups never
-- wait for each other.
CREATE OR REPLACE FUNCTION toolgate_commit(requests json, shared json, links json) RETURNS text[] LANGUAGE plpgsql AS $body$
DECLARE
  v text[] := ARRAY(SELECT json_array_elements_text(requests));
  total integer := coalesce(array_length(v, 1), 0);
  i integer := 1; stop integer; operation integer; conflict text; answers text[] := '{}';
BEGIN
PERFORM pg_advisory_xact_lock(k) FROM (SELECT DISTINCT hashtextextended(name, 0) AS k FROM (
  SELECT json_array_elements_text(shared) AS name UNION ALL SELECT bucket FROM holds
  WHERE link IN (SELECT json_array_elements_text(links)) AND state = 'held' AND sliding = 0) names ORDER BY k) keys;
WHILE i <= total LOOP
  stop := i + v[i]::integer; i := i + 1; operation := 0;
  BEGIN
    WHILE i <= stop LOOP
      conflict := toolgate_operation(v, i + 1);
      IF conflict IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = operation || ':' || conflict; END IF;
      i := i + 1 + v[i]::integer; operation := operation + 1;
    END LOOP;
    answers := answers || ''::text;
  EXCEPTION
    WHEN SQLSTATE 'TG001' THEN answers := answers || SQLERRM;
    WHEN integrity_constraint_violation OR data_exception OR case_not_found THEN
      answers := answers || ('!' || operation || ': ' || SQLERRM);
  END;
  i := stop + 1;
END LOOP;
RETURN answers;
END $body$;

-- A bucket that counts for nothing any more, with what is held in it: at most so many holds at a time, the counter last.
-- Never waits: where a commit has the bucket's lock it stays for the next sweep. Answers how many rows went.
CREATE OR REPLACE FUNCTION toolgate_drop_bucket(name text, before_ms bigint, most integer)
RETURNS integer LANGUAGE plpgsql AS $body$
DECLARE n integer; total numeric;
BEGIN
IF NOT pg_try_advisory_xact_lock(hashtextextended(name, 0)) THEN RETURN 0; END IF;
-- A commit may have prolonged it until the lock was had.
IF NOT EXISTS (SELECT 1 FROM counters WHERE bucket = name AND until_ms < before_ms) THEN RETURN 0; END IF;
WITH gone AS (DELETE FROM holds WHERE bucket = name
    AND link IN (SELECT link FROM holds WHERE bucket = name AND sliding = 0 LIMIT most) RETURNING amount)
  SELECT count(*), coalesce(sum(amount), 0) INTO n, total FROM gone;
IF n < most THEN
  DELETE FROM counters WHERE bucket = name;
  RETURN n + 1;
END IF;
UPDATE counters SET held = held - total WHERE bucket = name;
RETURN n;
END $body$;

CREATE OR REPLACE FUNCTION toolgate_sweep(now_ms bigint, claims_ms bigint, sessions_ms bigint, most integer)
RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE gone bigint := 0; n bigint; one text; other text; room bigint := most; held_room bigint := most;
BEGIN
DELETE FROM claims WHERE link IN (SELECT link FROM claims WHERE settled_at_ms < now_ms - claims_ms
  ORDER BY settled_at_ms LIMIT most FOR UPDATE SKIP LOCKED);
GET DIAGNOSTICS n = ROW_COUNT; gone := gone + n;
DELETE FROM receipts WHERE (issuer, caller, session, step) IN (SELECT issuer, caller, session, step FROM receipts
  WHERE until_ms < now_ms LIMIT most FOR UPDATE SKIP LOCKED);
GET DIAGNOSTICS n = ROW_COUNT; gone := gone + n;
DELETE FROM confirmations WHERE id IN (SELECT id FROM confirmations WHERE expires_ms < now_ms - claims_ms
  LIMIT most FOR UPDATE SKIP LOCKED);
GET DIAGNOSTICS n = ROW_COUNT; gone := gone + n;
DELETE FROM holds WHERE (link, bucket) IN (SELECT link, bucket FROM holds WHERE sliding = 1 AND until_ms < now_ms
  LIMIT most FOR UPDATE SKIP LOCKED);
GET DIAGNOSTICS n = ROW_COUNT; gone := gone + n;
FOR one IN SELECT bucket FROM counters c WHERE until_ms < now_ms
    AND (sid IS NULL OR NOT EXISTS (SELECT 1 FROM sessions s WHERE s.sid = c.sid)) LIMIT most LOOP
  EXIT WHEN held_room <= 0;
  n := toolgate_drop_bucket(one, now_ms, held_room::integer); gone := gone + n; held_room := held_room - n;
END LOOP;
-- A session goes at once, so that no call goes on in one half of it; its entries follow as they can.
FOR one IN DELETE FROM sessions WHERE sid IN (SELECT sid FROM sessions
    WHERE used_hour <= (now_ms - sessions_ms) / 3600000 AND used_at_ms < now_ms - sessions_ms
    AND sid NOT IN (SELECT sid FROM claims WHERE settled_at_ms IS NULL)
    AND sid NOT IN (SELECT sid FROM runs WHERE state IN ('failed', 'undoing', 'needs_person'))
    ORDER BY used_hour LIMIT 50 FOR UPDATE SKIP LOCKED) RETURNING sid LOOP
  INSERT INTO swept (sid) VALUES (one) ON CONFLICT DO NOTHING;
  DELETE FROM watched WHERE sid = one;
  DELETE FROM undos WHERE (caller, run) IN (SELECT caller, run FROM runs WHERE sid = one);
  DELETE FROM runs WHERE sid = one;
  gone := gone + 1;
END LOOP;
FOR one IN SELECT sid FROM swept LIMIT 50 FOR UPDATE SKIP LOCKED LOOP
  EXIT WHEN room <= 0;
  DELETE FROM steps WHERE sid = one AND step IN (SELECT step FROM steps WHERE sid = one ORDER BY step LIMIT room);
  GET DIAGNOSTICS n = ROW_COUNT; gone := gone + n; room := room - n;
  FOR other IN SELECT bucket FROM counters WHERE sid = one LIMIT room LOOP
    EXIT WHEN room <= 0;
    n := toolgate_drop_bucket(other, 9223372036854775807, room::integer); gone := gone + n; room := room - n;
  END LOOP;
  IF room > 0 AND NOT EXISTS (SELECT 1 FROM counters WHERE sid = one) THEN DELETE FROM swept WHERE sid = one; END IF;
END LOOP;
RETURN gone;
END $body$;
`;
