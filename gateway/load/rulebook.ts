import { dirname } from 'node:path';
import type { Call, RulebookGate, Snapshot } from '../../policy/call.ts';
import { type Fact, readFact } from '../../policy/facts.ts';
import { decideRulebook, loadRecord, type PreparedRulebook } from '../../policy/rulebook/decide.ts';
import type { RulebookRecord } from '../../policy/rulebook/record.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { BuiltCatalogue } from '../catalogue/build.ts';
import type { Config } from '../config/config.ts';
import type { Problem } from '../config/problem.ts';
import { makeCheckCells } from '../rulebook/check-cell.ts';
import { compileRulebookFiles } from '../rulebook/load.ts';

/** A config's rulebook, compiled; no record where it has none, or where a problem is an error. */
export interface LoadedRulebook {
  readonly record: RulebookRecord | undefined;
  readonly problems: readonly Problem[];
  /** Every file that was read, absolute. */
  readonly files: readonly string[];
}

/** Reads and compiles the rulebook of a config. */
export async function loadRulebook(config: Config, built: BuiltCatalogue): Promise<LoadedRulebook> {
  if (config.rulebook.length === 0) return { record: undefined, problems: [], files: [] };
  const tools = [...built.catalogue.tools.keys()];
  return compileRulebookFiles(config.rulebook, dirname(config.file), { tools });
}

/** Step 8 of a config: its rulebook over the facts of the call; says nothing where there is no rulebook. */
export interface RulebookPart {
  readonly gate: RulebookGate;
  /** Tools whose answers the facts of this tool's rules are read from. */
  readonly reads: (toolId: string) => readonly string[];
}

/** Makes step 8. */
export function makeRulebookPart(record: RulebookRecord | undefined, built: BuiltCatalogue): RulebookPart {
  if (record === undefined) return { gate: () => undefined, reads: () => [] };
  const prepared = loadRecord(record);
  const facts = factsOf(built);
  const check = makeCheckCells();
  const factTools = [...new Set([...facts.values()].map((fact) => fact.tool))];
  return {
    gate: (tool, call, snapshot) => decide(prepared, facts, check, tool.id, call, snapshot),
    reads: (toolId) => (prepared.plan(toolId) === undefined ? [] : factTools),
  };
}

function factsOf(built: BuiltCatalogue): ReadonlyMap<string, Fact> {
  const facts = new Map<string, Fact>();
  for (const { name, tool, field, equals, same } of built.facts.values()) {
    facts.set(name, {
      tool,
      path: field.split('.'),
      ...(equals === undefined ? {} : { equals }),
      ...(same === undefined ? {} : { same }),
    });
  }
  return facts;
}

function decide(
  prepared: PreparedRulebook,
  facts: ReadonlyMap<string, Fact>,
  check: ReturnType<typeof makeCheckCells>,
  toolId: string,
  call: Call,
  snapshot: Snapshot,
): ReturnType<RulebookGate> {
  const decision = decideRulebook(prepared, toolId, {
    facts: knownFacts(facts, call, snapshot),
    arguments: call.arguments,
    check,
  });
  switch (decision.kind) {
    case 'ungoverned':
    case 'allow':
      return undefined;
    case 'confirm':
      return { question: decision.question, detail: detailOf(decision) };
    case 'refuse':
      return { reason: decision.reason, detail: detailOf(decision) };
  }
}

/** Facts by name: those that the config reads from results, never what a caller says of them; then the host's own. */
function knownFacts(
  facts: ReadonlyMap<string, Fact>,
  call: Call,
  snapshot: Snapshot,
): Readonly<Record<string, boolean>> {
  const known: Record<string, boolean> = {};
  for (const [name, value] of Object.entries(call.context)) if (!facts.has(name)) known[name] = value;
  for (const [name, fact] of facts) known[name] = readFact(fact, snapshot.answers ?? [], call.arguments);
  return known;
}

function detailOf(decision: { readonly flow: string; readonly line: number; readonly because?: string }): JsonObject {
  const { flow, line, because } = decision;
  return because === undefined ? { flow, line } : { flow, line, because };
}
