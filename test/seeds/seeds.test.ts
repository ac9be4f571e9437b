import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { type Answer, Carried, type Driver, IN_PROCESS, OVER_HTTP } from './driver.ts';
import { readVector, SHOP_FILES, type ShopChange, shopConfig, type Words } from './seed-config.ts';

/** Nothing is forwarded by a check; the port is one that nobody listens on. */
const NOWHERE = 'http://127.0.0.1:9';

interface Call {
  readonly title?: string;
  readonly tool: string;
  readonly arguments: Record<string, unknown>;
  readonly origins?: Record<string, string>;
  readonly context?: Record<string, boolean>;
  readonly labels?: Record<string, string[]>;
  readonly confirmation?: { readonly from: number };
  readonly tamper?: { readonly entry: number; readonly set: Record<string, unknown> };
  readonly ran?: true | Record<string, unknown>;
  readonly expect: Record<string, unknown>;
}

interface Scenario {
  readonly title?: string;
  readonly agent?: string;
  readonly session?: string;
  readonly language?: string;
  readonly turns?: readonly string[];
  readonly override?: Record<string, Words>;
  readonly settings?: Record<string, unknown>;
  readonly calls: readonly Call[];
}

const files = ['seed-000-one-call-every-check.json', 'seed-001-rulebook.json', 'seed-003-answers.json'];
const table = readVector<{ language: string; groups: Scenario[] }>('seed-000-table.json');
const scenarios: readonly Scenario[] = [
  ...files.map((file) => ({ title: file, ...readVector<Scenario>(file) })),
  ...table.groups.map((group) => ({
    language: table.language,
    ...group,
    title: `seed-000-table.json: ${group.title}`,
  })),
];

for (const driver of [IN_PROCESS, OVER_HTTP]) {
  describe(`the seed documents' calls, ${driver.name}`, () => {
    for (const scenario of scenarios) test(scenario.title ?? '', () => play(driver, scenario));
  });
}

async function play(driver: Driver, scenario: Scenario): Promise<void> {
  const gateway = await startTestGateway(shopConfig(NOWHERE, changeOf(scenario)), { files: SHOP_FILES });
  try {
    const carried = new Carried(scenario.session);
    const answers: Answer[] = [];
    for (const [index, call] of scenario.calls.entries()) {
      const answer = await ask(driver, gateway, scenario, call, carried, answers);
      answers.push(answer);
      compare(answer, call, `${index}: ${call.title ?? call.tool}`, carried);
      if (call.ran !== undefined) await report(gateway, carried, answer, call.ran);
    }
  } finally {
    await gateway.close();
  }
}

function changeOf(scenario: Scenario): ShopChange {
  const { language, override, settings } = scenario;
  return {
    ...(language === undefined ? {} : { language }),
    ...(override === undefined ? {} : { override }),
    ...(settings === undefined ? {} : { settings }),
  };
}

async function ask(
  driver: Driver,
  gateway: TestGateway,
  scenario: Scenario,
  call: Call,
  carried: Carried,
  answers: readonly Answer[],
): Promise<Answer> {
  const { tool, arguments: args, origins, context, labels, confirmation, tamper } = call;
  if (tamper !== undefined) Object.assign(carried.entries[tamper.entry] ?? {}, tamper.set);
  const token = confirmation === undefined ? undefined : answers[confirmation.from]?.confirmation?.token;
  const answer = await driver.check(gateway, {
    tool,
    arguments: args,
    history: carried.history,
    ...(scenario.agent === undefined ? {} : { agent: scenario.agent }),
    ...(scenario.turns === undefined ? {} : { turns: scenario.turns }),
    ...(origins === undefined ? {} : { origins }),
    ...(context === undefined ? {} : { context }),
    ...(labels === undefined ? {} : { labels }),
    ...(token === undefined ? {} : { confirmation: token }),
  });
  carried.take(answer);
  return answer;
}

function compare(answer: Answer, call: Call, where: string, carried: Carried): void {
  const { entries, detail, ...expected } = call.expect;
  for (const [name, value] of Object.entries(expected)) {
    assert.deepEqual(answer[name as keyof Answer], value, `${where}: ${name} of ${JSON.stringify(answer)}`);
  }
  for (const [name, value] of Object.entries(detail ?? {})) {
    assert.deepEqual(answer.detail[name], value, `${where}: detail.${name} of ${JSON.stringify(answer)}`);
  }
  if (entries !== undefined) assert.equal(carried.entries.length, entries, `${where}: entries`);
}

/** What became of a call, said in the history where there is no result and to the API where there is one. */
async function report(
  gateway: TestGateway,
  carried: Carried,
  answer: Answer,
  ran: true | Record<string, unknown>,
): Promise<void> {
  const last = carried.entries.at(-1);
  assert.ok(last);
  last['outcome'] = 'ran';
  if (ran === true) return;
  const body = { session: answer.session, step: answer.step, outcome: 'ran', result: ran };
  const told = await gateway.request('POST', '/v1/outcomes', { body });
  assert.equal(told.status, 200, told.text);
}

describe('two servers that both offer read', () => {
  const file = readVector<{ servers: Record<string, Record<string, Words>>; calls: Call[] }>('seed-002-pairs.json');
  let gateway: TestGateway;
  before(async () => {
    gateway = await startTestGateway({
      agents: { reader: {} },
      routes: Object.entries(file.servers).map(([name, tools]) => ({
        name,
        path: `/${name}`,
        upstream: NOWHERE,
        agents: ['reader'],
        http: Object.keys(tools).map((tool) => ({ name: tool, method: 'GET', path: `/${tool}` })),
        tools: Object.entries(tools).map(([tool, { writes: _writes, ...words }]) => ({ name: tool, ...words })),
      })),
    });
  });
  after(() => gateway.close());
  for (const driver of [IN_PROCESS, OVER_HTTP]) {
    for (const call of file.calls) {
      test(`${call.tool}, ${driver.name}`, async () => {
        const answer = await driver.check(gateway, { tool: call.tool, arguments: call.arguments, agent: 'reader' });
        compare(answer, call, call.tool, new Carried(undefined));
      });
    }
  }
});

describe('an address that says whose data is read', () => {
  interface Variant {
    readonly words: Words;
    readonly arguments: Record<string, unknown>;
    readonly expect: Record<string, unknown>;
  }
  const file = readVector<{ tool: Words; variants: Variant[] }>('seed-004-subject.json');
  for (const [index, variant] of file.variants.entries()) {
    test(`variant ${index}: ${JSON.stringify(variant.words)}`, async () => {
      const { name, input } = file.tool;
      const gateway = await startTestGateway({
        agents: { assistant: {} },
        routes: [
          {
            name: 'calendar',
            path: '/calendar',
            upstream: NOWHERE,
            agents: ['assistant'],
            http: [{ name, method: 'GET', path: '/events', input }],
            tools: [{ name, ...variant.words }],
          },
        ],
      });
      try {
        for (const driver of [IN_PROCESS, OVER_HTTP]) {
          const call = { tool: String(name), arguments: variant.arguments };
          compare(
            await driver.check(gateway, call),
            { ...call, expect: variant.expect },
            driver.name,
            new Carried(undefined),
          );
        }
      } finally {
        await gateway.close();
      }
    });
  }
});
