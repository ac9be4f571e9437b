import type { Call, Snapshot } from '../call.ts';
import { findTool } from '../catalogue.ts';
import { labelsOf } from '../labels.ts';
import { refuse, type Step, type StepAnswer, type Work } from '../verdict.ts';

/** Row 1. Whoever may not reach a tool is told no more than that it is not there. */
export const CATALOGUE_STEP: Step = {
  name: 'catalogue',
  checks:
    'the tool is in the catalogue as a full server/tool pair and this agent may reach it; with several agents, the call names its own; the licence holds',
  reasons: ['unknown_tool', 'agent_required', 'licence_lapsed'],
  run: checkCatalogue,
};

function checkCatalogue(snapshot: Snapshot, call: Call, work: Work): StepAnswer | undefined {
  const agent = call.agent ?? onlyAgent(call);
  if (agent === undefined) return refuse('agent_required');
  work.agent = agent;
  if (!call.caller.agents.has(agent)) return refuse('unknown_tool');
  const found = findTool(snapshot.catalogue, call.tool, agent);
  if (!('tool' in found)) {
    if (found.candidates.length > 0) return refuse('unknown_tool', { candidates: found.candidates });
    const pinned = snapshot.catalogue.tools.get(call.tool);
    const pin = pinned?.agents.has(agent) ? pinned.pin : undefined;
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
