import type { JsonObject } from '../../receipts/json-value.ts';
import { decideConfirmation } from '../enforce/decide-confirmation.ts';
import type { AskedOfClient, ToolCheck } from '../exchange.ts';
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
  return decideConfirmation(gateway, record, { to, approver: personOf(caller.name), atMs: now });
}

/** Who approved, in the log: the person behind a host, as that host says. */
function personOf(host: string): string {
  return `person of ${host}`;
}
