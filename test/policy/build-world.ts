import type { Call, Confirmation, GateRefusal, Snapshot, StepFacts } from '../../policy/call.ts';
import { type Catalogue, makeCatalogue } from '../../policy/catalogue.ts';
import { type CompiledSchema, compileSchema } from '../../policy/schema/compile.ts';
import { appendToView, endRunInView, openView, reportToView, type SessionView } from '../../policy/session.ts';
import type { Tool, UndoBinding } from '../../policy/tool.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import type { Outcome } from '../../receipts/history.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import {
  NOW_MS,
  POLICY,
  SESSION,
  type World,
  type WorldConfirmation,
  type WorldEntry,
  type WorldTool,
} from './world.ts';

/** What `checkCall` takes. */
export interface Built {
  readonly snapshot: Snapshot;
  readonly call: Call;
}

/** Builds all that a check of the world's call takes, its history folded entry by entry as the gateway does. */
export function buildWorld(world: World): Built {
  const catalogue = buildCatalogue(world);
  const { view, steps } = foldPast(world, catalogue);
  const past = world.past ?? [];
  const call = buildCall(world);
  const { conditions, rulebook, settings, fault } = world;
  const confirmation = buildConfirmation(world);
  return {
    call,
    snapshot: {
      catalogue,
      settings: {
        language: settings?.language ?? 'en',
        taintPolicy: settings?.taint_policy ?? 'confirm',
        ...(settings?.lapsed === undefined ? {} : { lapsed: settings.lapsed }),
      },
      session: {
        id: SESSION,
        view,
        head: past.length === 0 ? undefined : { step: past.length - 1, link: linkOf(past.length - 1) },
        ...(fault === undefined ? {} : { fault }),
      },
      steps,
      policy: POLICY,
      // The check only compares digests, so the texts themselves will do.
      digests: { arguments: canonicalize(call.arguments), origins: canonicalize(call.origins) },
      nowMs: NOW_MS,
      step7: () => (conditions === undefined ? undefined : refusalOf(conditions)),
      step8: () => {
        if (rulebook === undefined) return undefined;
        return 'question' in rulebook
          ? { question: rulebook.question, detail: rulebook.detail ?? {} }
          : refusalOf(rulebook);
      },
      ...(confirmation === undefined ? {} : { confirmation }),
    },
  };
}

function refusalOf(gate: { readonly reason: string; readonly detail?: JsonObject }): GateRefusal {
  return { reason: gate.reason, detail: gate.detail ?? {} };
}

function linkOf(step: number): string {
  return `link-${step}`;
}

function buildCatalogue(world: World): Catalogue {
  const agents = Object.entries(world.agents);
  return makeCatalogue(
    Object.entries(world.tools).map(([id, words]) =>
      buildTool(id, words, Object.keys(world.agents), resultPaths(world, id)),
    ),
    agents.map(([name, { privilege = 0 }]) => ({ name, privilege, defaults: {} })),
  );
}

/** Every field that a result of the tool has in the world's past: its result schema declares them. */
function resultPaths(world: World, id: string): readonly string[] {
  const results = (world.past ?? []).filter(({ tool }) => tool === id).map(({ result }) => result ?? {});
  return [...new Set(results.flatMap((result) => Object.keys(result)))];
}

function resultSchema(paths: readonly string[]): JsonObject {
  const properties: Record<string, JsonObject> = {};
  for (const path of paths) {
    const [name = '', ...rest] = path.split('.');
    properties[name] = rest.length === 0 ? {} : resultSchema([rest.join('.')]);
  }
  return { type: 'object', properties };
}

function buildTool(id: string, words: WorldTool, everyone: readonly string[], results: readonly string[]): Tool {
  const slash = id.indexOf('/');
  const undo = words.undo === undefined ? undefined : buildUndo(words.undo);
  return {
    id,
    server: id.slice(0, slash),
    name: id.slice(slash + 1),
    description: '',
    input: compiled(words.input ?? { type: 'object', properties: {} }),
    writes: words.writes ?? false,
    irreversible: words.irreversible ?? false,
    idempotent: false,
    sendsOut: words.sends_out ?? false,
    readsOutside: words.reads_outside ?? false,
    subjectArguments: words.subject_arguments ?? [],
    confidential: false,
    privilege: words.privilege ?? 0,
    agents: new Set(words.agents ?? everyone),
    confirm: words.confirm ?? 'always',
    after: words.after ?? [],
    notAfter: words.not_after ?? [],
    restores: false,
    argumentKinds: {},
    defaults: {},
    watched: [],
    ...(results.length === 0 ? {} : { result: compiled(resultSchema(results)) }),
    ...(words.at_most === undefined ? {} : { atMost: words.at_most }),
    ...(undo === undefined ? {} : { undo }),
    ...(words.pin === undefined ? {} : { pin: words.pin }),
  };
}

const COMPILED = new Map<string, CompiledSchema<JsonObject>>();

/** A schema compiled once for all the worlds that have it. */
function compiled(schema: JsonObject): CompiledSchema<JsonObject> {
  const text = JSON.stringify(schema);
  const known = COMPILED.get(text) ?? compileSchema(schema);
  COMPILED.set(text, known);
  return known;
}

function buildUndo(undo: NonNullable<WorldTool['undo']>): UndoBinding | 'none' {
  if (undo === 'none') return undo;
  const bound = Object.entries(undo.with).map(([name, source]) => {
    const dot = source.indexOf('.');
    const from = source.slice(0, dot);
    if (from !== 'arguments' && from !== 'result') throw new Error(`\`${source}\` is no source of an undo`);
    return [name, { from, path: source.slice(dot + 1) }] as const;
  });
  return { tool: undo.tool, with: Object.fromEntries(bound), safeIfNothingHappened: undo.safe ?? false };
}

interface Folded {
  readonly view: SessionView;
  readonly steps: ReadonlyMap<number, StepFacts>;
}

/** The session's view and what is known of its steps: each entry appended, then what was reported of it. */
function foldPast(world: World, catalogue: Catalogue): Folded {
  let view = openView({ tools: world.carried?.tools ?? {}, labels: world.carried?.labels ?? [] });
  const past = world.past ?? [];
  const outcomes = new Map<number, Outcome>();
  const undone = new Set<number>();
  const report = (step: number, after: Outcome): void => {
    const entry = past[step];
    const tool = entry === undefined ? undefined : catalogue.tools.get(entry.tool);
    if (entry === undefined || tool === undefined) throw new Error(`step ${step} cannot be reported`);
    view = reportToView(view, { tool, before: outcomes.get(step), after, ...runAndUndoes(entry) });
    outcomes.set(step, after);
  };
  for (const [step, entry] of past.entries()) {
    const decision = entry.decision ?? 'allow';
    const tool = catalogue.tools.get(entry.tool);
    const named = tool === undefined ? {} : { tool };
    view = appendToView(view, { step, decision, labels: entry.labels ?? [], ...named, ...runAndUndoes(entry) });
    if (decision !== 'allow') continue;
    const known = entry.believed === false ? undefined : entry.outcome;
    if (known !== undefined) report(step, known);
    if (entry.undoes === undefined || known === 'failed') continue;
    undone.add(entry.undoes);
    if (known === 'ran') report(entry.undoes, 'compensated');
  }
  for (const run of world.ended_runs ?? []) view = endRunInView(view, run);
  const facts = past.map((entry, step) => factsOf(entry, step, catalogue, outcomes.get(step), undone.has(step)));
  return { view, steps: new Map(facts.map((each) => [each.step, each])) };
}

function runAndUndoes(entry: WorldEntry): { readonly run?: string; readonly undoes?: number } {
  return {
    ...(entry.run === undefined ? {} : { run: entry.run }),
    ...(entry.undoes === undefined ? {} : { undoes: entry.undoes }),
  };
}

function factsOf(
  entry: WorldEntry,
  step: number,
  catalogue: Catalogue,
  outcome: Outcome | undefined,
  undoAllowed: boolean,
): StepFacts {
  const seen = entry.believed === false ? undefined : entry.result;
  const bound = boundOf(catalogue.tools.get(entry.tool)?.undo, entry.arguments ?? {}, seen ?? {});
  return {
    step,
    link: `link-${step}`,
    toolId: entry.tool,
    agent: entry.agent ?? 'desk',
    outcome,
    labels: entry.labels ?? [],
    undoAllowed,
    compareField: (field, value) => compareField(seen, field, value),
    ...runAndUndoes(entry),
    ...(bound === undefined ? {} : { undoArguments: bound }),
  };
}

function compareField(seen: JsonObject | undefined, field: string, value: JsonValue): 'equal' | 'other' | 'unseen' {
  const known = seen !== undefined && Object.hasOwn(seen, field) ? seen[field] : undefined;
  if (known === undefined) return 'unseen';
  return canonicalize(known) === canonicalize(value) ? 'equal' : 'other';
}

function boundOf(undo: Tool['undo'], args: JsonObject, result: JsonObject): string | undefined {
  if (undo === undefined || undo === 'none') return undefined;
  const bound: Record<string, JsonValue> = {};
  for (const [name, { from, path }] of Object.entries(undo.with)) {
    const value = (from === 'arguments' ? args : result)[path];
    if (value !== undefined) bound[name] = value;
  }
  return Object.keys(bound).length === 0 ? undefined : canonicalize(bound);
}

function buildCall(world: World): Call {
  const { call, caller } = world;
  return {
    tool: call.tool,
    arguments: call.arguments ?? {},
    caller: {
      name: caller.name ?? 'app',
      host: caller.host ?? false,
      agents: new Set(caller.agents ?? Object.keys(world.agents)),
    },
    filled: new Set(call.filled ?? []),
    faults: call.faults ?? [],
    origins: call.origins ?? {},
    turns: call.turns ?? [],
    labels: call.labels ?? {},
    context: {},
    fromEngine: call.engine ?? false,
    ...(call.agent === undefined ? {} : { agent: call.agent }),
    ...(call.run === undefined ? {} : { run: call.run }),
    ...(call.undoes === undefined ? {} : { undoes: call.undoes }),
  };
}

function questionOf(world: World, given: WorldConfirmation): { readonly question?: string } {
  if (given.question !== undefined) return { question: given.question };
  const { rulebook } = world;
  const asks = given.reasons.includes('gate_clarify') && rulebook !== undefined && 'question' in rulebook;
  return asks ? { question: rulebook.question } : {};
}

function buildConfirmation(world: World): Confirmation | 'invalid' | undefined {
  const given = world.confirmation;
  if (given === undefined || given === 'invalid') return given;
  return {
    id: 'confirmation-1',
    session: given.session ?? SESSION,
    link: given.link ?? linkOf(given.step),
    step: given.step,
    tool: given.tool,
    agent: given.agent,
    arguments: canonicalize(given.arguments),
    expires: given.expires ?? NOW_MS + 1,
    spent: given.spent ?? false,
    point: given.point ?? 'exact',
    asked: {
      reasons: given.reasons,
      run: given.run,
      undoes: given.undoes,
      origins: canonicalize(given.origins),
      labels: given.labels ?? [],
      caller: given.caller ?? world.caller.name ?? 'app',
      policy: given.policy ?? POLICY,
      ...questionOf(world, given),
    },
  };
}
