import assert from 'node:assert/strict';
import type { ConfirmationState, Operation } from '../../gateway/store/port.ts';
import type { Case } from './contract.ts';
import { aClaim, aConfirmation, anEntry, append, aSession, fresh, move, NOW_MS, open } from './records.ts';

const OK = { ok: true };

export const CLAIM_CASES: readonly Case[] = [
  {
    title: 'a claim comes back as it was made, by link and by scope key',
    run: async ({ shared }) => {
      const claim = aClaim({
        scopeKey: fresh(),
        run: 'r-9',
        undoes: 2,
        upstreamKey: fresh(),
        request: '{"amount":12,"note":"Zoë"}',
        why: 'asked twice',
      });
      assert.deepEqual(await shared.commit([{ op: 'claim', claim }]), OK);
      assert.deepEqual(await shared.findClaim({ link: claim.link }), claim);
      assert.deepEqual(await shared.findClaim({ scopeKey: claim.scopeKey ?? '' }), claim);
      assert.equal(await shared.findClaim({ link: fresh() }), undefined);
    },
  },
  {
    title: 'a link and a scope key are claimed once',
    run: async ({ shared }) => {
      const claim = aClaim({ scopeKey: fresh() });
      await shared.commit([{ op: 'claim', claim }]);
      const taken = { ok: false, operation: 0, conflict: 'claim_exists' };
      assert.deepEqual(await shared.commit([{ op: 'claim', claim: aClaim({ link: claim.link }) }]), taken);
      assert.deepEqual(
        await shared.commit([{ op: 'claim', claim: aClaim({ scopeKey: claim.scopeKey ?? '' }) }]),
        taken,
      );
      assert.deepEqual(await shared.commit([{ op: 'claim', claim: aClaim() }]), OK);
    },
  },
  {
    title: 'of 50 with one scope key one claims',
    run: async ({ shared }) => {
      const scopeKey = fresh();
      const results = await Promise.all(
        Array.from({ length: 50 }, () => shared.commit([{ op: 'claim', claim: aClaim({ scopeKey }) }])),
      );
      assert.equal(results.filter((result) => result.ok).length, 1);
    },
  },
  {
    title: 'a claim moves by its fence and from the states that are named, and is settled with its answer',
    run: async ({ shared }) => {
      const claim = aClaim({ request: '{"a":1}' });
      await shared.commit([{ op: 'claim', claim }]);
      const fenced = { ok: false, operation: 0, conflict: 'claim_fenced' };
      assert.deepEqual(await shared.commit([move(claim, 'sending', { fence: 2 })]), fenced);
      assert.deepEqual(await shared.commit([move(claim, 'ran', { from: ['sending', 'outcome_unknown'] })]), fenced);
      assert.deepEqual(await shared.commit([move(aClaim(), 'sending')]), fenced);
      assert.deepEqual(await shared.commit([move(claim, 'sending')]), OK);
      assert.equal((await shared.findClaim(claim))?.settledAtMs, undefined);
      assert.deepEqual(await shared.commit([move(claim, 'outcome_unknown', { from: ['sending'], why: 'reset' })]), OK);
      const unknown = await shared.findClaim(claim);
      assert.equal(unknown?.why, 'reset');
      assert.equal(unknown?.request, '{"a":1}');
      const body = Uint8Array.from({ length: 256 }, (_, byte) => byte);
      const answer = { kind: 'kept', status: 201, contentType: 'application/json', body } as const;
      assert.deepEqual(await shared.commit([move(claim, 'ran', { from: ['sending', 'outcome_unknown'], answer })]), OK);
      const ran = await shared.findClaim(claim);
      assert.equal(ran?.state, 'ran');
      assert.equal(ran?.settledAtMs, NOW_MS + 5);
      assert.equal(ran?.why, undefined);
      assert.equal(ran?.request, undefined);
      assert.equal(ran?.answer?.kind, 'kept');
      assert.deepEqual(new Uint8Array(ran?.answer?.kind === 'kept' ? ran.answer.body : []), body);
      assert.deepEqual(await shared.commit([move(claim, 'sending', { from: ['claimed', 'sending'] })]), fenced);
    },
  },
  {
    title: 'an answer is kept whole up to a mebibyte, empty too, or leaves a tombstone',
    run: async ({ shared }) => {
      const large = aClaim();
      const empty = aClaim();
      const gone = aClaim();
      const body = Buffer.alloc(1_048_576, 'é');
      await shared.commit([
        {
          op: 'claim',
          claim: { ...large, state: 'ran', settledAtMs: NOW_MS, answer: { kind: 'kept', status: 200, body } },
        },
        { op: 'claim', claim: empty },
        { op: 'claim', claim: gone },
        move(empty, 'ran', { answer: { kind: 'kept', status: 204, body: new Uint8Array() } }),
        move(gone, 'ran', { answer: { kind: 'tombstone', status: 200 } }),
      ]);
      const kept = (await shared.findClaim(large))?.answer;
      assert.ok(kept?.kind === 'kept' && body.equals(kept.body));
      assert.equal(kept.contentType, undefined);
      const nothing = (await shared.findClaim(empty))?.answer;
      assert.ok(nothing?.kind === 'kept' && nothing.body.byteLength === 0);
      assert.deepEqual((await shared.findClaim(gone))?.answer, { kind: 'tombstone', status: 200 });
    },
  },
  {
    title: 'claims are listed by state, oldest first, as many as asked for',
    run: async ({ own }) => {
      const store = await own();
      const claims = [3, 1, 2].map((n) => aClaim({ createdAtMs: NOW_MS + n }));
      await store.commit(claims.map((claim) => ({ op: 'claim', claim })));
      const times = (found: readonly { createdAtMs: number }[]) => found.map((claim) => claim.createdAtMs - NOW_MS);
      assert.deepEqual(times(await store.listClaims('claimed', 10)), [1, 2, 3]);
      assert.deepEqual(times(await store.listClaims('claimed', 2)), [1, 2]);
      assert.deepEqual(await store.listClaims('ran', 10), []);
      await store.commit(claims.map((claim) => move(claim, 'failed', { why: 'refused' })));
      assert.equal((await store.listClaims('failed', 10)).length, 3);
      assert.deepEqual(await store.listClaims('claimed', 10), []);
    },
  },
  {
    title: 'a lapsed claim is taken over once, under a new fence, and its former owner is fenced',
    run: async ({ own }) => {
      const store = await own();
      const lapsed = aClaim({ leaseUntilMs: NOW_MS - 1 });
      const live = aClaim({ leaseUntilMs: NOW_MS + 1 });
      const byHost = aClaim({ leaseUntilMs: NOW_MS - 1, runBy: 'host', createdAtMs: NOW_MS + 1 });
      const unknown = aClaim({ leaseUntilMs: NOW_MS - 1, state: 'outcome_unknown' });
      await store.commit([lapsed, live, byHost, unknown].map((claim) => ({ op: 'claim', claim })));
      const both = await Promise.all(['a', 'b'].map((owner) => store.takeLapsedClaims(owner, NOW_MS, NOW_MS + 50, 10)));
      const taken = both.flat();
      assert.deepEqual(new Set(taken.map((claim) => claim.link)), new Set([lapsed.link, byHost.link]));
      assert.equal(taken.length, 2);
      for (const claim of taken) {
        assert.equal(claim.fence, 2);
        assert.equal(claim.leaseUntilMs, NOW_MS + 50);
        assert.ok(['a', 'b'].includes(claim.owner));
      }
      assert.deepEqual(await store.commit([move(lapsed, 'sending')]), {
        ok: false,
        operation: 0,
        conflict: 'claim_fenced',
      });
      assert.deepEqual(await store.takeLapsedClaims('c', NOW_MS, NOW_MS + 50, 10), []);
      // Who sends a call takes it from nobody, least of all from itself; what a host was to report is looked after anyhow.
      const mine = aClaim({ owner: 'me', leaseUntilMs: NOW_MS - 1 });
      const reported = aClaim({ owner: 'me', leaseUntilMs: NOW_MS - 1, runBy: 'host' });
      await store.commit([mine, reported].map((claim) => ({ op: 'claim', claim })));
      const byMe = await store.takeLapsedClaims('me', NOW_MS, NOW_MS + 50, 10);
      assert.deepEqual(
        byMe.map((claim) => claim.link),
        [reported.link],
      );
      assert.deepEqual(
        (await store.takeLapsedClaims('d', NOW_MS, NOW_MS + 50, 10)).map((claim) => claim.link),
        [mine.link],
      );
      assert.equal((await store.takeLapsedClaims('c', NOW_MS + 51, NOW_MS + 99, 1)).length, 1);
    },
  },
  {
    title: 'a live owner renews what the gateway runs, and what a host runs keeps its own lease',
    run: async ({ own }) => {
      const store = await own();
      const mine = aClaim({ owner: 'me' });
      const hosts = aClaim({ owner: 'me', runBy: 'host' });
      const others = aClaim({ owner: 'you' });
      await store.commit([mine, hosts, others].map((claim) => ({ op: 'claim', claim })));
      await store.renewLeases('me', NOW_MS + 99_000);
      assert.equal((await store.findClaim(mine))?.leaseUntilMs, NOW_MS + 99_000);
      assert.equal((await store.findClaim(hosts))?.leaseUntilMs, NOW_MS + 30_000);
      assert.equal((await store.findClaim(others))?.leaseUntilMs, NOW_MS + 30_000);
    },
  },
  {
    title: 'a confirmation comes back as it was asked, and by the call that it is for',
    run: async ({ shared }) => {
      const confirmation = aConfirmation();
      const { id, sid, callDigest } = confirmation;
      await shared.commit([{ op: 'put_confirmation', confirmation }]);
      assert.deepEqual(await shared.findConfirmation(id), confirmation);
      assert.deepEqual(await shared.findConfirmationOfCall(sid, callDigest), confirmation);
      const newer = aConfirmation({ sid, callDigest, createdAtMs: NOW_MS + 1 });
      await shared.commit([{ op: 'put_confirmation', confirmation: newer }]);
      assert.equal((await shared.findConfirmationOfCall(sid, callDigest))?.id, newer.id);
      await shared.commit([{ op: 'move_confirmation', id: newer.id, from: ['pending'], to: 'denied', atMs: NOW_MS }]);
      assert.equal((await shared.findConfirmationOfCall(sid, callDigest))?.id, id);
      assert.equal(await shared.findConfirmationOfCall(sid, fresh()), undefined);
      assert.equal(await shared.findConfirmation(fresh()), undefined);
    },
  },
  {
    title: 'a confirmation is approved once and spent once',
    run: async ({ shared }) => {
      const confirmation = aConfirmation();
      const { id } = confirmation;
      await shared.commit([{ op: 'put_confirmation', confirmation }]);
      const spend: Operation = { op: 'move_confirmation', id, from: ['approved'], to: 'spent', atMs: NOW_MS + 2 };
      const wrong = { ok: false, operation: 0, conflict: 'confirmation_state' };
      assert.deepEqual(await shared.commit([spend]), wrong);
      assert.deepEqual(
        await shared.commit([
          {
            op: 'move_confirmation',
            id,
            from: ['pending'],
            to: 'approved',
            approver: 'ana',
            note: 'ok',
            atMs: NOW_MS + 1,
          },
        ]),
        OK,
      );
      const results = await Promise.all([shared.commit([spend]), shared.commit([spend]), shared.commit([spend])]);
      assert.equal(results.filter((result) => result.ok).length, 1);
      assert.deepEqual(
        results.find((result) => !result.ok),
        { ok: false, operation: 0, conflict: 'confirmation_spent' },
      );
      const found = await shared.findConfirmation(id);
      assert.deepEqual(
        [found?.state, found?.approver, found?.note, found?.decidedAtMs],
        ['spent', 'ana', 'ok', NOW_MS + 2],
      );
      assert.deepEqual(await shared.commit([{ ...spend, id: fresh() }]), wrong);
    },
  },
  {
    title:
      'held confirmations are listed by state: those that wait and are not expired oldest first, the others newest first',
    run: async ({ own }) => {
      const store = await own();
      const held = { mode: 'held', expiresMs: NOW_MS + 10 } as const;
      const [late, early] = [aConfirmation({ ...held, createdAtMs: NOW_MS + 1 }), aConfirmation(held)];
      // What nobody is to decide here, or any more, takes no place from what waits.
      const others = [aConfirmation({ ...held, mode: 'returned' }), aConfirmation({ ...held, expiresMs: NOW_MS })];
      const all = [...others, late, early];
      await store.commit(all.map((confirmation) => ({ op: 'put_confirmation', confirmation })));
      const list = async (state: ConfirmationState, limit: number): Promise<readonly string[]> =>
        (await store.listConfirmations(state, NOW_MS, limit)).map((found) => found.id);
      assert.deepEqual(await list('pending', 9), [early.id, late.id]);
      assert.deepEqual(await list('pending', 1), [early.id]);
      assert.deepEqual(await list('denied', 9), []);
      const deny = { op: 'move_confirmation', from: ['pending'], to: 'denied', approver: 'ana' } as const;
      await store.commit([
        { ...deny, id: early.id, atMs: NOW_MS + 3 },
        { ...deny, id: late.id, atMs: NOW_MS + 2 },
      ]);
      assert.deepEqual(await list('denied', 9), [early.id, late.id]);
      assert.deepEqual(await list('denied', 1), [early.id]);
    },
  },
  {
    title: 'a receipt is spent once, and another at its place is a fork',
    run: async ({ shared }) => {
      const key = { issuer: 'runtime', caller: 'app', session: fresh(), step: 4 };
      const link = fresh();
      const spend: Operation = { op: 'spend_receipt', key, link, untilMs: NOW_MS + 1 };
      const kept = (upTo: number, limit: number) => shared.findReceipts(key, { upTo, limit });
      assert.deepEqual(await kept(4, 9), []);
      assert.deepEqual(await shared.commit([spend]), OK);
      assert.deepEqual(await kept(4, 9), [{ step: 4, link }]);
      assert.deepEqual(await kept(3, 9), []);
      const later = fresh();
      assert.deepEqual(await shared.commit([{ ...spend, key: { ...key, step: 6 }, link: later }]), OK);
      assert.deepEqual(await kept(9, 9), [
        { step: 6, link: later },
        { step: 4, link },
      ]);
      assert.deepEqual(await kept(9, 1), [{ step: 6, link: later }]);
      assert.deepEqual(await shared.commit([spend]), { ok: false, operation: 0, conflict: 'receipt_spent' });
      assert.deepEqual(await shared.commit([{ ...spend, link: fresh() }]), {
        ok: false,
        operation: 0,
        conflict: 'receipt_forked',
      });
      assert.deepEqual(await shared.commit([{ ...spend, key: { ...key, step: 3 } }]), OK);
    },
  },
  {
    title: 'a claim is taken again under the next fence, with the call that is to be sent where it was not kept',
    run: async ({ shared }) => {
      const claim = aClaim({ runBy: 'host', state: 'sending', owner: 'caller' });
      await shared.commit([{ op: 'claim', claim }]);
      const taken = { owner: 'r-1', leaseUntilMs: NOW_MS + 5, atMs: NOW_MS } as const;
      const retake = (fence: number, request?: string): Operation => {
        const again = {
          op: 'retake_claim',
          link: claim.link,
          fence,
          from: ['sending', 'outcome_unknown'],
          ...taken,
        } as const;
        return request === undefined ? again : { ...again, request };
      };
      const fenced = { ok: false, operation: 0, conflict: 'claim_fenced' };
      assert.deepEqual(await shared.commit([retake(claim.fence + 1)]), fenced);
      assert.deepEqual(await shared.commit([retake(claim.fence, '{"a":"Zoë"}')]), OK);
      assert.deepEqual(await shared.commit([retake(claim.fence)]), fenced);
      const now = await shared.findClaim(claim);
      assert.deepEqual(
        [now?.state, now?.owner, now?.fence, now?.runBy, now?.request],
        ['sending', 'r-1', claim.fence + 1, 'gateway', '{"a":"Zoë"}'],
      );
      assert.deepEqual(await shared.commit([retake(claim.fence + 1)]), OK);
      assert.equal((await shared.findClaim(claim))?.request, '{"a":"Zoë"}');
    },
  },
  {
    title: 'a list happens as a whole or not at all',
    run: async ({ shared }) => {
      const session = aSession();
      const spent: Operation = {
        op: 'spend_receipt',
        key: { issuer: 'i', caller: 'c', session: fresh(), step: 0 },
        link: fresh(),
        untilMs: NOW_MS,
      };
      await shared.commit([open(session), spent]);
      const claim = aClaim();
      const bucket = fresh();
      const replica = fresh();
      const confirmation = aConfirmation();
      const result = await shared.commit([
        ...append(session, 1, anEntry(0)),
        { op: 'claim', claim },
        { op: 'hold', bucket, link: claim.link, amount: '1', max: '9', atMs: NOW_MS },
        { op: 'put_confirmation', confirmation },
        { op: 'outbox', replica, n: 1, line: '{}' },
        spent,
        { op: 'outbox', replica, n: 2, line: '{}' },
      ]);
      assert.deepEqual(result, { ok: false, operation: 6, conflict: 'receipt_spent' });
      assert.equal((await shared.findSession(session))?.version, 1);
      assert.deepEqual(await shared.readEntries(session.sid), []);
      assert.equal(await shared.findClaim(claim), undefined);
      assert.equal((await shared.readCounters([bucket])).size, 0);
      assert.equal(await shared.findConfirmation(confirmation.id), undefined);
      assert.deepEqual(await shared.readOutbox(replica, 9), []);
    },
  },
  {
    title: 'a conflict or a refused commit takes nothing of its group along',
    run: async ({ shared }) => {
      const taken = aClaim();
      const replica = fresh();
      await shared.commit([{ op: 'claim', claim: taken }]);
      await shared.commit([{ op: 'outbox', replica, n: 1, line: 'first' }]);
      const claims = Array.from({ length: 8 }, () => aClaim());
      const [good, conflict, refused] = await Promise.all([
        Promise.all(claims.map((claim) => shared.commit([{ op: 'claim', claim }, move(claim, 'sending')]))),
        shared.commit([
          { op: 'claim', claim: aClaim() },
          { op: 'claim', claim: taken },
        ]),
        shared
          .commit([
            { op: 'outbox', replica, n: 2, line: 'second' },
            { op: 'outbox', replica, n: 1, line: 'again' },
          ])
          .catch((error: unknown) => error),
      ]);
      assert.deepEqual(
        good,
        claims.map(() => OK),
      );
      assert.deepEqual(conflict, { ok: false, operation: 1, conflict: 'claim_exists' });
      assert.ok(refused instanceof Error && 'code' in refused && refused.code === 'store_unavailable');
      assert.match(refused.message, /refuses operation 1/);
      assert.deepEqual(await shared.readOutbox(replica, 9), [{ n: 1, line: 'first' }]);
      for (const claim of claims) assert.equal((await shared.findClaim(claim))?.state, 'sending');
    },
  },
  {
    title: 'lines of the outbox wait in order until they are written, each replica its own',
    run: async ({ shared }) => {
      const replica = fresh();
      const line = (n: number): Operation => ({ op: 'outbox', replica, n, line: `{"n":${n}}` });
      await shared.commit([line(2), line(1), line(3), { op: 'outbox', replica: fresh(), n: 1, line: 'other' }]);
      assert.deepEqual(
        (await shared.readOutbox(replica, 2)).map(({ n }) => n),
        [1, 2],
      );
      await shared.commit([{ op: 'outbox_written', replica, n: 2 }]);
      assert.deepEqual(await shared.readOutbox(replica, 9), [{ n: 3, line: '{"n":3}' }]);
    },
  },
];
