import type { Call, Snapshot } from './call.ts';
import { believeOrigin } from './origin-trust.ts';
import { sessionLabels, sortedUnion } from './session.ts';
import type { Tool } from './tool.ts';

/**
 * The labels of a call: those that it came with, and those that the gateway adds (docs/check.md, "Taint"). A label says
 * that a value came from somewhere less trusted: `untrusted:<tool>` or `agent:<name>`. Labels are only ever added.
 */
export function labelsOf(snapshot: Snapshot, call: Call, tool: Tool, agent: string): readonly string[] {
  let labels: readonly string[] = [];
  for (const given of Object.values(call.labels)) labels = sortedUnion(labels, given);
  if (privilegeOf(snapshot, agent) < tool.privilege) labels = sortedUnion(labels, [`agent:${agent}`]);
  const ofSession = sessionLabels(snapshot.session.view);
  for (const [name, value] of Object.entries(call.arguments)) {
    const origin = believeOrigin(name, value, call, snapshot);
    if (origin.step !== undefined) {
      const step = snapshot.steps.get(origin.step);
      if (step === undefined) continue;
      labels = sortedUnion(labels, step.labels);
      const source = snapshot.catalogue.tools.get(step.toolId);
      if (source?.readsOutside) labels = sortedUnion(labels, [`untrusted:${source.name}`]);
      if (privilegeOf(snapshot, step.agent) < tool.privilege) labels = sortedUnion(labels, [`agent:${step.agent}`]);
    }
    // A model that has read something from outside may be repeating it.
    if (!origin.trusted) labels = sortedUnion(labels, ofSession);
  }
  return labels;
}

/** The labels that make a write of this tool tainted: every one but `agent:` labels of agents with privilege enough. */
export function taintsOf(snapshot: Snapshot, tool: Tool, labels: readonly string[]): readonly string[] {
  return labels.filter((label) => {
    if (!label.startsWith('agent:')) return true;
    return privilegeOf(snapshot, label.slice('agent:'.length)) < tool.privilege;
  });
}

/** An agent that the config does not know has less privilege than any. */
function privilegeOf(snapshot: Snapshot, agent: string): number {
  return snapshot.catalogue.agents.get(agent)?.privilege ?? -1;
}
