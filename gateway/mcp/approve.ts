import type { JsonObject } from '../../receipts/json-value.ts';
import type { AskedOfClient, ToolCheck } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import type { EndpointContext } from './client-call.ts';

/** Whether the client can ask its person, and is believed when it says what the person said. */
export function canAskPerson({ caller, capabilities }: EndpointContext): boolean {
  const { elicitation } = capabilities;
  if (!caller.host || typeof elicitation !== 'object' || elicitation === null || Array.isArray(elicitation))
    return false;
  // An empty object means forms (revision 2025-11-25, "Elicitation").
  return Object.keys(elicitation).length === 0 || 'form' in elicitation;
}

/** The question that a confirm is to the person of a host's client. */
export function questionOf(check: ToolCheck): AskedOfClient {
  return {
    method: 'elicitation/create',
    params: {
      mode: 'form',
      message: check.sentence,
      requestedSchema: {
        type: 'object',
        properties: { approve: { type: 'boolean', title: 'Approve', description: 'Let this call be made, once' } },
        required: ['approve'],
      },
    },
  };
}

/** What the person said: yes, no, or nothing. */
export function readAnswer(answer: JsonObject | undefined): 'approved' | 'denied' | 'open' {
  const { action, content } = answer ?? {};
  if (action === 'decline') return 'denied';
  if (action !== 'accept') return 'open';
  const approve =
    typeof content === 'object' && content !== null && !Array.isArray(content)
      ? (content as JsonObject)['approve']
      : undefined;
  if (approve === true) return 'approved';
  return approve === false ? 'denied' : 'open';
}

/** Records what a host's person said of a confirmation. False where it is not this caller's, not pending, or past its time. */
export async function decideByPerson(
  { gateway, caller }: EndpointContext,
  id: string,
  to: 'approved' | 'denied',
): Promise<boolean> {
  const record = await gateway.store.findConfirmation(id);
  const now = gateway.now();
  if (record === undefined || record.caller !== caller.name || record.state !== 'pending' || record.expiresMs <= now)
    return false;
  const approver = personOf(caller.name);
  const line = gateway.audit.prepare({
    event: 'approval',
    act: to === 'approved' ? 'approve' : 'deny',
    approver,
    confirmation: id,
    tool: record.tool,
    agent: record.agent,
    caller: record.caller,
    session: record.session,
    step: record.step,
  });
  const moved = await commit(gateway, id, to, approver, now, line);
  if (!moved) gateway.audit.abandon(line);
  else await gateway.audit.write(line);
  return moved;
}

async function commit(
  gateway: Gateway,
  id: string,
  to: 'approved' | 'denied',
  approver: string,
  atMs: number,
  line: { readonly n: number; readonly line: string },
): Promise<boolean> {
  const result = await gateway.commit([
    { op: 'move_confirmation', id, from: ['pending'], to, approver, atMs },
    { op: 'outbox', replica: gateway.audit.replica, n: line.n, line: line.line },
  ]);
  return result.ok;
}

/** Who approved, in the log: the person behind a host, as that host says. */
function personOf(host: string): string {
  return `person of ${host}`;
}
