import { compileSchema } from '../../policy/schema/compile.ts';
import { parseJson } from '../../receipts/json.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { VectorFile, World } from './world.ts';

const TEXT: JsonObject = { type: 'string' };
const FLAG: JsonObject = { type: 'boolean' };
const COUNT: JsonObject = { type: 'integer', minimum: 0 };
const ANY: JsonObject = { type: 'object', additionalProperties: true };
const listOf = (items: JsonObject): JsonObject => ({ type: 'array', items });
const mapOf = (additionalProperties: JsonObject): JsonObject => ({ type: 'object', additionalProperties });
const oneOf = (...values: readonly string[]): JsonObject => ({ enum: values });
const record = (properties: JsonObject, ...required: readonly string[]): JsonObject => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

const OUTCOME = oneOf('ran', 'failed', 'outcome_unknown', 'compensated');
const TOOL = record({
  input: ANY,
  writes: FLAG,
  irreversible: FLAG,
  sends_out: FLAG,
  reads_outside: FLAG,
  subject_arguments: listOf(TEXT),
  privilege: COUNT,
  agents: listOf(TEXT),
  confirm: oneOf('always', 'reasons'),
  after: listOf(record({ tool: TEXT, bind: mapOf(TEXT) }, 'tool')),
  not_after: listOf(TEXT),
  at_most: COUNT,
  undo: { anyOf: [{ const: 'none' }, record({ tool: TEXT, with: mapOf(TEXT), safe: FLAG }, 'tool', 'with')] },
  pin: oneOf('changed', 'missing'),
});
const ENTRY = record(
  {
    tool: TEXT,
    agent: TEXT,
    arguments: ANY,
    decision: oneOf('allow', 'confirm', 'refuse'),
    labels: listOf(TEXT),
    run: TEXT,
    undoes: COUNT,
    outcome: OUTCOME,
    believed: FLAG,
    result: ANY,
  },
  'tool',
);
const CALL = record(
  {
    tool: TEXT,
    agent: TEXT,
    arguments: ANY,
    origins: mapOf(TEXT),
    turns: listOf(TEXT),
    labels: mapOf(listOf(TEXT)),
    filled: listOf(TEXT),
    faults: listOf(record({ pointer: TEXT, rule: TEXT, message: TEXT }, 'pointer', 'rule', 'message')),
    run: TEXT,
    undoes: COUNT,
    engine: FLAG,
  },
  'tool',
);
const CONFIRMATION = record(
  {
    step: COUNT,
    link: TEXT,
    session: TEXT,
    tool: TEXT,
    agent: TEXT,
    arguments: ANY,
    origins: mapOf(TEXT),
    reasons: listOf(TEXT),
    labels: listOf(TEXT),
    run: TEXT,
    undoes: COUNT,
    caller: TEXT,
    policy: TEXT,
    expires: COUNT,
    spent: FLAG,
    point: oneOf('exact', 'until_write'),
    question: TEXT,
  },
  ...['step', 'tool', 'agent', 'arguments', 'origins', 'reasons'],
);
const WORLD = record(
  {
    agents: mapOf(record({ privilege: COUNT })),
    tools: mapOf(TOOL),
    settings: record({
      language: oneOf('en', 'pt-BR'),
      taint_policy: oneOf('confirm', 'refuse'),
      lapsed: oneOf('writes', 'all'),
    }),
    caller: record({ name: TEXT, host: FLAG, agents: listOf(TEXT) }),
    carried: record({ tools: mapOf(COUNT), labels: listOf(TEXT) }),
    past: listOf(ENTRY),
    ended_runs: listOf(TEXT),
    fault: record({ fault: TEXT, entry: COUNT }, 'fault'),
    call: CALL,
    confirmation: { anyOf: [{ const: 'invalid' }, CONFIRMATION] },
    conditions: record({ reason: TEXT, detail: ANY }, 'reason'),
    rulebook: {
      anyOf: [record({ reason: TEXT, detail: ANY }, 'reason'), record({ question: TEXT, detail: ANY }, 'question')],
    },
  },
  ...['agents', 'tools', 'caller', 'call'],
);
const EXPECT = record(
  {
    decision: oneOf('allow', 'confirm', 'refuse'),
    step: TEXT,
    reasons: listOf(TEXT),
    pointer: TEXT,
    detail: ANY,
    waived: listOf(TEXT),
    labels: listOf(TEXT),
  },
  ...['decision', 'step', 'reasons'],
);
const CHANGE = {
  anyOf: [record({ at: TEXT, set: {} }, 'at', 'set'), record({ at: TEXT, remove: { const: true } }, 'at', 'remove')],
};
const FILE = record(
  {
    about: TEXT,
    worlds: mapOf(record({ why: TEXT, world: ANY, expect: EXPECT }, 'world', 'expect')),
    vectors: listOf(
      record({ id: TEXT, why: TEXT, world: TEXT, change: CHANGE, expect: EXPECT }, 'id', 'world', 'change', 'expect'),
    ),
  },
  ...['about', 'worlds', 'vectors'],
);

const WORLD_SCHEMA = compileSchema(WORLD);
const FILE_SCHEMA = compileSchema(FILE);

/** Reads a file of vectors. Throws for a member that it does not know, at any depth that the schema above names. */
export function parseVectorFile(text: string): VectorFile {
  const value = parseJson(text);
  const [fault] = FILE_SCHEMA.validate(value);
  if (fault !== undefined) throw new Error(`not a vector file: \`${fault.pointer}\` ${fault.message}`);
  return value as unknown as VectorFile;
}

/** Reads a world. Throws for a member that it does not know. */
export function parseWorld(value: JsonValue): World {
  const [fault] = WORLD_SCHEMA.validate(value);
  if (fault !== undefined) throw new Error(`not a world: \`${fault.pointer}\` ${fault.message}`);
  return value as unknown as World;
}
