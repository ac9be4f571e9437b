import type { JsonObject } from '../../receipts/json-value.ts';
import { canAskPerson, decideByPerson, questionOf, readAnswer } from './approve.ts';
import { callTool } from './call-tool.ts';
import type { ClientRequest, EndpointContext } from './client-call.ts';
import { dispatch } from './dispatch.ts';

/** Answers a request of the older era: a person is asked while the request waits. */
export async function answerLegacy(context: EndpointContext, request: ClientRequest): Promise<JsonObject> {
  const end = await dispatch(context, request);
  if (end.kind !== 'confirm' || request.method !== 'tools/call' || !canAskPerson(context)) return end.result;
  const { check, result } = end;
  const id = check.confirmation?.id;
  if (id === undefined) return result;
  const said = readAnswer(await askPerson(context, request, check));
  if (said === 'open') return result;
  await decideByPerson(context, id, said);
  return said === 'denied' ? DENIED : (await callTool(context, request, id)).result;
}

/** What a model is told of a call that its person did not want. */
export const DENIED: JsonObject = {
  content: [{ type: 'text', text: 'the person did not approve this call; it was not made' }],
  isError: true,
};

async function askPerson(
  { gateway }: EndpointContext,
  request: ClientRequest,
  check: Parameters<typeof questionOf>[0],
): Promise<JsonObject | undefined> {
  try {
    return (await request.ask({ approve: questionOf(check) }))['approve'];
  } catch (error) {
    // The confirmation waits: an approver can still decide it.
    gateway.log.debug({ err: error }, 'the person of an MCP client could not be asked');
    return undefined;
  }
}
