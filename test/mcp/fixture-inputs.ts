import { randomBytes } from 'node:crypto';
import {
  createRequestStateCodec,
  fromJsonSchema,
  type InputRequest,
  type InputRequiredResult,
  inputRequired,
  type McpServer,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { canonicalize } from '../../receipts/canonical.ts';
import { NOTHING, READS, schema, text } from './fixture-schema.ts';

/** What the fixture keeps between the rounds of a call: signed, so that a client cannot make one up. */
interface Rounds {
  readonly round: number;
}

export const INPUT_STATE: RequestStateCodec<Rounds> = createRequestStateCodec<Rounds>({ key: randomBytes(32) });

const elicit = (message: string, property: string, type = 'string'): InputRequest =>
  inputRequired.elicit({ message, requestedSchema: schema({ [property]: { type } }, [property]) } as never);

const sample = (prompt: string, maxTokens: number): InputRequest =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens });

const ASKS_NAME: InputRequest = elicit('What is your name?', 'name');

type Answered = { readonly content: { readonly type: 'text'; readonly text: string }[] };

/** What the official suite asks of tools, and of a prompt, that need something of the client first (SEP-2322). */
export function addInputTools(server: McpServer): void {
  const tool = (
    name: string,
    description: string,
    run: (ctx: ServerContext) => Answered | InputRequiredResult | Promise<Answered | InputRequiredResult>,
  ): void => {
    const about = { description, inputSchema: fromJsonSchema(NOTHING), annotations: READS };
    server.registerTool(`test_${name}`, about, (_args, ctx) => run(ctx) as never);
  };
  const asking = (
    name: string,
    questions: Readonly<Record<string, InputRequest>>,
    after: (answers: Readonly<Record<string, unknown>>, ctx: ServerContext) => string,
    state?: Rounds,
  ): void =>
    tool(name, `asks for ${Object.keys(questions).join(', ')}`, async (ctx) => {
      const answers = (ctx.mcpReq.inputResponses ?? {}) as Readonly<Record<string, unknown>>;
      const missing = Object.keys(questions).some((key) => answers[key] === undefined);
      if (!missing) return text(after(answers, ctx));
      const requestState = state === undefined ? {} : { requestState: await INPUT_STATE.mint(state) };
      return inputRequired({ inputRequests: questions, ...requestState });
    });
  asking('input_required_result_elicitation', { user_name: ASKS_NAME }, ({ user_name }) => `Hello, ${said(user_name)}`);
  asking(
    'input_required_result_sampling',
    { capital_question: sample('What is the capital of France?', 100) },
    ({ capital_question }) => `the model said ${said(capital_question)}`,
  );
  asking(
    'input_required_result_list_roots',
    { client_roots: inputRequired.listRoots() },
    ({ client_roots }) => `the client has ${said(client_roots)}`,
  );
  const confirm = { confirm: elicit('Please confirm', 'ok', 'boolean') };
  const stateSaid = (_answers: unknown, { mcpReq }: ServerContext): string =>
    mcpReq.requestState<Rounds>()?.round === 1 ? 'state-ok' : 'the state is missing';
  asking('input_required_result_request_state', confirm, stateSaid, { round: 1 });
  asking('input_required_result_tampered_state', confirm, stateSaid, { round: 1 });
  asking(
    'input_required_result_multiple_inputs',
    { user_name: ASKS_NAME, greeting: sample('Generate a greeting', 50), client_roots: inputRequired.listRoots() },
    (answers) => said(answers),
    { round: 1 },
  );
  tool('input_required_result_multi_round', 'asks in two rounds', async ({ mcpReq }) => {
    const round = mcpReq.requestState<Rounds>()?.round ?? 0;
    if (round === 2) return text(`both rounds are answered: ${said(mcpReq.inputResponses)}`);
    const questions = [
      { step1: elicit('Step 1: What is your name?', 'name') },
      { step2: elicit('Step 2: What is your favorite color?', 'color') },
    ] as const;
    const inputRequests: Record<string, InputRequest> = { ...questions[round === 0 ? 0 : 1] };
    return inputRequired({ inputRequests, requestState: await INPUT_STATE.mint({ round: round + 1 }) });
  });
  tool('input_required_result_capabilities', 'asks what the client can be asked', ({ mcpReq }) => {
    const can = server.server.getClientCapabilities() ?? {};
    const inputRequests: Record<string, InputRequest> = {
      ...(can.elicitation === undefined ? {} : { elicit_input: elicit('Elicitation input', 'value') }),
      ...(can.sampling === undefined ? {} : { sample_input: sample('Sample request', 50) }),
    };
    const answers = mcpReq.inputResponses;
    if (answers !== undefined || Object.keys(inputRequests).length === 0)
      return text(`answered: ${said(answers ?? null)}`);
    return inputRequired({ inputRequests });
  });
  tool('missing_capability', 'needs a client that samples', ({ mcpReq }) =>
    mcpReq.inputResponses === undefined
      ? inputRequired({ inputRequests: { sample: sample('anything', 10) } })
      : text('the client samples'),
  );
  server.registerPrompt('test_input_required_result_prompt', { description: 'asks for its context' }, (ctx) => {
    const answer = ctx.mcpReq.inputResponses?.['user_context'];
    if (answer === undefined) {
      const asked = elicit('What context should the prompt use?', 'context');
      return inputRequired({ inputRequests: { user_context: asked } });
    }
    return { messages: [{ role: 'user', content: { type: 'text', text: `the context is ${said(answer)}` } }] };
  });
}

function said(answer: unknown): string {
  return canonicalize(answer as never);
}
