import type { JsonObject } from '../../receipts/json-value.ts';

const JSON_BODY = (schema: JsonObject): JsonObject => ({ required: true, content: { 'application/json': { schema } } });
const JSON_ANSWER = (description: string, schema: JsonObject): JsonObject => ({
  description,
  content: { 'application/json': { schema } },
});
const REF = (name: string): JsonObject => ({ $ref: `#/components/schemas/${name}` });
const PROBLEM: JsonObject = {
  description: 'What is wrong and what to do (RFC 9457)',
  content: { 'application/problem+json': { schema: REF('Problem') } },
};
const TEXT: JsonObject = { type: 'string' };
const TEXTS: JsonObject = { type: 'array', items: TEXT };

const CALL_MEMBERS: JsonObject = {
  session: { type: 'string', description: 'the conversation; made by the gateway and returned where absent' },
  agent: { type: 'string', description: 'who calls; must be one that the credential may name' },
  run: { type: 'string', description: 'the run whose writes are undone together' },
  origins: { type: 'object', additionalProperties: TEXT, description: 'where each argument came from' },
  turns: { ...TEXTS, description: "the person's own words, as evidence; never stored or logged" },
  labels: { type: 'object', additionalProperties: TEXTS },
  context: { type: 'object', additionalProperties: { type: 'boolean' }, description: 'facts by name' },
  history: { type: 'object', description: 'a carried qls-history/1; absent where the gateway holds it' },
  confirmation: { type: 'string', description: "a token, or a held confirmation's id" },
  undoes: { type: 'integer', minimum: 0, description: 'the step that this call undoes' },
  idempotency_key: { type: 'string', minLength: 1, maxLength: 255 },
};

const CALL: JsonObject = {
  type: 'object',
  required: ['tool'],
  additionalProperties: false,
  properties: { tool: TEXT, arguments: { type: 'object' }, ...CALL_MEMBERS },
};

const CHECK: JsonObject = {
  type: 'object',
  required: ['format', 'decision', 'reason', 'reasons', 'detail', 'sentence', 'tool', 'agent', 'session', 'step'],
  properties: {
    format: { const: 'qls-tool-check/1' },
    decision: { enum: ['allow', 'confirm', 'refuse'] },
    reason: TEXT,
    reasons: TEXTS,
    pointer: TEXT,
    detail: { type: 'object' },
    sentence: TEXT,
    tool: TEXT,
    agent: TEXT,
    session: TEXT,
    step: { type: 'integer' },
    entry: { type: 'object' },
    history: { type: 'object' },
    idempotency_key: TEXT,
    confirmation: {
      type: 'object',
      required: ['id', 'expires'],
      properties: { id: TEXT, token: TEXT, expires: { type: 'integer' }, approve_at: TEXT },
    },
  },
};

const ID: JsonObject = { name: 'id', in: 'path', required: true, schema: TEXT };
const CALLER: JsonObject = { name: 'caller', in: 'query', schema: TEXT, description: 'whose run, for approvers' };
const SESSION: JsonObject = { name: 'session', in: 'query', schema: TEXT };
const FREE: JsonObject = { type: 'object' };

function operation(summary: string, answer: JsonObject, more: JsonObject = {}): JsonObject {
  return { summary, ...more, responses: { '200': answer, default: PROBLEM } };
}

/** `GET /openapi.json`: the control API as an OpenAPI 3.1 document. */
export const API_DESCRIPTION: JsonObject = {
  openapi: '3.1.0',
  info: { title: 'Toolgate control API', version: '1', description: 'See docs/api.md.' },
  security: [{ key: [] }],
  paths: {
    '/v1/check': {
      post: operation('Check one call; the caller runs it', JSON_ANSWER('The decision, whatever it is', REF('Check')), {
        requestBody: JSON_BODY(REF('Call')),
      }),
    },
    '/v1/call': {
      post: operation(
        'Check one call, forward it once, and answer what became of it',
        JSON_ANSWER('The decision and, where the call was allowed, its outcome and result', {
          type: 'object',
          properties: { check: REF('Check'), outcome: TEXT, status: { type: 'integer' }, result: {} },
        }),
        { requestBody: JSON_BODY(REF('Call')) },
      ),
    },
    '/v1/receipts': {
      post: operation(
        'Say whether a receipt admits one call; spends it where `spend` is true',
        JSON_ANSWER('A qls-tool-receipt/1, whatever it says', FREE),
        {
          requestBody: JSON_BODY({
            type: 'object',
            required: ['tool', 'history'],
            additionalProperties: false,
            properties: { tool: TEXT, arguments: { type: 'object' }, ...CALL_MEMBERS, spend: { type: 'boolean' } },
          }),
        },
      ),
    },
    '/v1/outcomes': {
      get: operation('Calls in a state, for approvers', JSON_ANSWER('The calls, oldest first', FREE), {
        parameters: [
          { name: 'state', in: 'query', schema: { enum: ['outcome_unknown', 'claimed', 'sending', 'failed', 'ran'] } },
        ],
      }),
      post: operation('Report what became of a call that the caller ran itself', JSON_ANSWER('The report', FREE), {
        requestBody: JSON_BODY({
          type: 'object',
          required: ['session', 'step', 'outcome'],
          additionalProperties: false,
          properties: {
            session: TEXT,
            step: { type: 'integer', minimum: 0 },
            outcome: { enum: ['ran', 'failed', 'outcome_unknown', 'compensated'] },
            result: {},
          },
        }),
      }),
    },
    '/v1/outcomes/{id}/settle': {
      post: operation('Say what became of a call of which nobody knows', JSON_ANSWER('The settlement', FREE), {
        parameters: [ID],
        requestBody: JSON_BODY({
          type: 'object',
          required: ['outcome', 'reason'],
          additionalProperties: false,
          properties: {
            outcome: { enum: ['ran', 'failed'] },
            reason: { type: 'string', minLength: 1, maxLength: 500 },
          },
        }),
      }),
    },
    '/v1/runs': {
      get: operation('Runs of a state: a caller its own, an approver all', JSON_ANSWER('The runs', FREE), {
        parameters: [{ name: 'state', in: 'query', schema: TEXT }],
      }),
    },
    '/v1/runs/{id}': {
      get: operation('How a run stands', JSON_ANSWER('The run', FREE), { parameters: [ID, CALLER, SESSION] }),
    },
    '/v1/runs/{id}/undo': {
      post: operation('Fail a run and undo what it wrote', JSON_ANSWER('The run', FREE), { parameters: [ID, CALLER] }),
    },
    '/v1/runs/{id}/end': {
      post: operation('End a run: nothing of it is undone', JSON_ANSWER('The run', FREE), { parameters: [ID, CALLER] }),
    },
    '/v1/runs/{id}/settle': {
      post: operation('Say what becomes of an undo that needs a person', JSON_ANSWER('The run', FREE), {
        parameters: [ID],
        requestBody: JSON_BODY({
          type: 'object',
          required: ['caller', 'step', 'as', 'reason'],
          additionalProperties: false,
          properties: {
            caller: TEXT,
            step: { type: 'integer', minimum: 0 },
            as: { enum: ['undone', 'left', 'retry'] },
            reason: { type: 'string', minLength: 1 },
          },
        }),
      }),
    },
    '/v1/tools': { get: operation('The tools that this caller reaches', JSON_ANSWER('The tools', FREE)) },
    '/v1/usage': { get: operation('What is used of limits and pools', JSON_ANSWER('The counts', FREE)) },
    '/v1/sessions/{id}': {
      get: operation('The held history of a session', JSON_ANSWER('A qls-history/1', FREE), { parameters: [ID] }),
    },
    '/v1/confirmations': {
      get: operation('Confirmations that wait for an approver', JSON_ANSWER('The confirmations', FREE), {
        parameters: [{ name: 'state', in: 'query', schema: { enum: ['pending', 'approved', 'denied', 'spent'] } }],
      }),
    },
    '/v1/confirmations/{id}': {
      get: operation('One confirmation, with what a person must see', JSON_ANSWER('The confirmation', FREE), {
        parameters: [ID],
      }),
    },
    '/v1/confirmations/{id}/approve': {
      post: operation('Approve a held call', JSON_ANSWER('The decision', FREE), { parameters: [ID] }),
    },
    '/v1/confirmations/{id}/deny': {
      post: operation('Deny a held call', JSON_ANSWER('The decision', FREE), { parameters: [ID] }),
    },
    '/metrics': {
      get: operation(
        "The gateway's metrics, for Prometheus; with credentials configured for approvers and hosts alone",
        {
          description: 'Prometheus text format',
          content: { 'text/plain': { schema: TEXT } },
        },
      ),
    },
    '/healthz': { get: operation('The process answers', JSON_ANSWER('Alive', FREE), { security: [] }) },
    '/readyz': { get: operation('Whether calls can be taken', JSON_ANSWER('Ready', FREE), { security: [] }) },
  },
  components: {
    securitySchemes: { key: { type: 'http', scheme: 'bearer' } },
    schemas: {
      Call: CALL,
      Check: CHECK,
      Problem: {
        type: 'object',
        required: ['type', 'title', 'status', 'detail'],
        properties: {
          type: { type: 'string', description: '`urn:toolgate:` and the reason code' },
          title: TEXT,
          status: { type: 'integer' },
          detail: { type: 'string', description: 'a sentence that says what to do' },
          pointer: TEXT,
          check: REF('Check'),
          receipt: FREE,
        },
      },
    },
  },
};
