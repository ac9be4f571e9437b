import type { Call, Snapshot } from '../call.ts';
import { findDeclaredUndo, findTool } from '../catalogue.ts';
import { labelsOf } from '../labels.ts';
import { refuse, type Step, type StepAnswer, type Work } from '../verdict.ts';

/** Row 1. Whoever may not reach a tool is told no more than that it is not there. */
export const CATALOGUE_STEP: Step = {
  name: 'catalogue',
  checks:
    'the tool is in the catalogue as a full server/tool pair and this agent may reach it; with several agents, the call names its own; the licence holds',
  answers: 'refuse',
  reasons: ['unknown_tool', 'agent_required', 'licence_lapsed'],
  run: checkCatalogue,
};

function checkCatalogue(snapshot: Snapshot, call: Call, work: Work): StepAnswer | undefined {
  const agent = call.agent ?? onlyAgent(call);
  if (agent === undefined) return refuse('agent_required');
  work.agent = agent;
  // An undo that the gateway sends runs as the agent of the step, whatever that agent may reach by now.
  const sentHere = call.fromEngine && call.undoes !== undefined;
  if (!sentHere && !call.caller.agents.has(agent)) return refuse('unknown_tool');
  const found = sentHere
    ? findDeclaredUndo(snapshot.catalogue, call.tool)
    : findTool(snapshot.catalogue, call.tool, agent);
  if (!('tool' in found)) {
    const { candidates, pin } = found;
    if (candidates.length > 0) return refuse('unknown_tool', { candidates });
    return refuse('unknown_tool', pin === undefined ? undefined : { pin });
  }
  work.tool = found.tool;
  work.labels = labelsOf(snapshot, call, found.tool, agent);
  const { lapsed } = snapshot.settings;
  if (lapsed === 'all' || (lapsed === 'writes' && found.tool.writes)) return refuse('licence_lapsed');
  return undefined;
}

function onlyAgent(call: Call): string | undefined {
  if (call.caller.agents.size !== 1) return undefined;
  const [only] = call.caller.agents;
  return only;
}
