import { endRunInView } from '../../policy/session.ts';
import { SESSION_BUSY } from '../enforce/problems.ts';
import type { Gateway } from '../gateway.ts';
import { applyReports } from '../session-reports.ts';
import type { SessionKey } from '../store/port.ts';

const MAX_ATTEMPTS = 8;

/** Ends a run that went well: it takes no more calls, and nothing of it is undone. Resolves with whether it ended now. */
export function endRun(gateway: Gateway, key: SessionKey, name: string): Promise<boolean> {
  return gateway.sessions.inLine(key, async () => {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const session = await gateway.sessions.find(key);
      const run = await gateway.store.findRun(key.caller, name);
      if (session === undefined || run === undefined || run.state !== 'open') return false;
      const change = applyReports(session, [], (view) => endRunInView(view, name));
      const { caller, agent } = run;
      const names = { run: name, caller, agent, session: key.session };
      const line = gateway.audit.prepare({ event: 'run', act: 'end', ...names });
      const result = await gateway.commit([
        ...change.operations,
        { op: 'touch_run', run: { ...run, state: 'ended', updatedAtMs: gateway.now() }, from: ['open'] },
        { op: 'outbox', replica: gateway.audit.replica, n: line.n, line: line.line },
      ]);
      if (result.ok) {
        gateway.sessions.keep(change.record, session);
        await gateway.audit.write(line);
        return true;
      }
      gateway.audit.abandon(line);
      gateway.sessions.forget(key);
    }
    throw new Error(SESSION_BUSY.detail);
  });
}
