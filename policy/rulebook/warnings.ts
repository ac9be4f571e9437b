import type { Answer } from './answer.ts';
import type { ConditionInputs } from './condition.ts';
import { factsIn } from './condition.ts';
import type { PreparedRulebook, ToolPlan } from './decide.ts';
import { loadRecord, walkEntries } from './decide.ts';
import { didYouMean, quoted } from './nearest.ts';
import type { Position, Problems } from './problem.ts';
import { calleeOrder, reachOf } from './reach.ts';
import type { RulebookRecord } from './record.ts';

/** Where a node's statement stands; undefined for a sheet's, whose flow has its own line. */
type Locate = (flow: number, node: number) => Position | undefined;

/** The warnings that only the finished record shows. */
export function warnOfRecord(
  record: RulebookRecord,
  locate: Locate,
  catalogue: readonly string[] | undefined,
  problems: Problems,
): void {
  const prepared = loadRecord(record);
  warnOfMissingStops(record, locate, problems);
  const known =
    catalogue === undefined
      ? undefined
      : new Set([...catalogue, ...catalogue.map((tool) => tool.slice(tool.indexOf('/') + 1))]);
  const looking: Looking = { prepared, locate, problems, left: MAX_LOOKED_AT };
  let told = false;
  for (const [tool, place] of firstPlaces(record, locate)) {
    if (known !== undefined && !known.has(tool)) {
      const near = problems.hasRoom('warning') ? didYouMean(tool, known) : '';
      const message = `no tool ${quoted(tool)} is in the catalogue, so this rule governs nothing${near}`;
      problems.warn('tool_not_in_catalogue', place, message);
    }
    if (looking.left > 0) {
      warnOfTool(looking, tool, place);
    } else if (!told) {
      told = true;
      const message = `this rulebook is too large to be looked through for every tool: from ${quoted(tool)} on it is not told where an allow hangs on a missing fact; split its flows by tool`;
      problems.warn('too_large', place, message);
    }
  }
}

/** Looking at a tool costs the nodes that concern it, and many tools in one long flow have them all: so many in all. */
const MAX_LOOKED_AT = 400_000;

interface Looking {
  readonly prepared: PreparedRulebook;
  readonly locate: Locate;
  readonly problems: Problems;
  /** How many nodes may still be looked at for warnings. */
  left: number;
}

/** For each tool, the first place where it is executed. */
function firstPlaces(record: RulebookRecord, locate: Locate): ReadonlyMap<string, Position> {
  const places = new Map<string, Position>();
  for (const [index, flow] of record.flows.entries()) {
    for (const [at, node] of flow.nodes.entries()) {
      if (node.op !== 'execute' && node.op !== 'answer') continue;
      const here = locate(index, at) ?? { file: flow.file, line: node.line, column: 1 };
      const known = places.get(node.tool);
      // Nodes stand in the order of the last statement first; the earliest line is the one to show.
      if (known === undefined || (here.file === known.file && here.line < known.line)) places.set(node.tool, here);
    }
  }
  return places;
}

function warnOfTool(looking: Looking, tool: string, place: Position): void {
  const { prepared, locate, problems } = looking;
  const plan = prepared.plan(tool);
  if (plan === undefined) return;
  const nodes = plan.flows.reduce((sum, index) => sum + (prepared.record.flows[index]?.nodes.length ?? 0), 0);
  looking.left -= nodes;
  if (plan.entries.length === 0) {
    problems.warn(
      'no_tool_reached',
      place,
      `no flow that runs by itself reaches this, so every call of ${quoted(tool)} is refused; call the subflow it stands in`,
    );
    return;
  }
  const walk = (facts: ConditionInputs['facts']): Answer => {
    looking.left -= nodes;
    return walkEntries(prepared, plan, { facts, arguments: {} });
  };
  if (walk({}).kind !== 'allow') return;
  if (walk(undefined).kind === 'allow') return;
  const read = factsRead(prepared, plan, locate);
  // The fact that turns the allow when it holds is the one that it hangs on.
  const hung = read.find(([fact]) => looking.left > MAX_LOOKED_AT / 2 && walk({ [fact]: true }).kind !== 'allow');
  const [fact, where] = hung ?? read[0] ?? [];
  if (fact === undefined || where === undefined) return;
  problems.warn(
    'hangs_on_missing',
    where,
    `${quoted(tool)} is allowed where \`$${fact}\` is missing, and a fact that nobody sends is false; let the allow hang on a fact that holds`,
  );
}

/** Trying each fact costs a walk, so only so many are tried, with half of what may be looked at; else the first is told. */
const MAX_FACTS_TRIED = 32;

/** The facts that decide on the way to a tool, with the first condition that reads each. */
function factsRead(
  prepared: PreparedRulebook,
  plan: ToolPlan,
  locate: Locate,
): readonly (readonly [string, Position])[] {
  const found = new Map<string, Position>();
  for (const index of plan.flows) {
    const flow = prepared.record.flows[index];
    if (flow === undefined) continue;
    for (let at = flow.nodes.length - 1; at >= 0; at -= 1) {
      const node = flow.nodes[at];
      if (node?.op !== 'if') continue;
      for (const branch of node.branches) {
        for (const fact of factsIn(branch.when)) {
          if (found.has(fact)) continue;
          found.set(fact, locate(index, at) ?? { file: flow.file, line: branch.line, column: 1 });
          if (found.size >= MAX_FACTS_TRIED) return [...found];
        }
      }
    }
  }
  return [...found];
}

/** A refusing message after which execution can still follow: the call is refused, the conversation would go on. */
function warnOfMissingStops(record: RulebookRecord, locate: Locate, problems: Problems): void {
  const all = [...record.flows.keys()];
  const order = calleeOrder(record.flows, all);
  const reach = reachOf(record, order, () => true);
  // Whether some caller can go on to execute a tool once this flow has returned; callers come last in the order.
  const follows = new Uint8Array(record.flows.length);
  for (let again = true; again; ) {
    again = false;
    for (const index of [...order].reverse()) {
      const flow = record.flows[index];
      for (const node of flow?.nodes ?? []) {
        if (node.op !== 'call' && node.op !== 'recursion') continue;
        const after =
          reach.hits[index]?.[node.next] === 1 || (reach.exits[index]?.[node.next] === 1 && follows[index] === 1);
        if (!after || follows[node.flow] === 1) continue;
        follows[node.flow] = 1;
        again ||= node.op === 'recursion';
      }
    }
  }
  for (const [index, flow] of record.flows.entries()) {
    for (const [at, node] of flow.nodes.entries()) {
      if (node.op !== 'say' || node.role !== 'refuse') continue;
      const executes = reach.hits[index]?.[node.next] === 1;
      if (!executes && !(reach.exits[index]?.[node.next] === 1 && follows[index] === 1)) continue;
      const where = locate(index, at) ?? { file: flow.file, line: flow.line, column: 1 };
      problems.warn(
        'missing_stop',
        where,
        `a tool can still be executed after \`bot ${node.name}\`; the call is refused here for good, so write \`stop\` (\`abort\` in Colang 2.x) after it`,
      );
    }
  }
}
