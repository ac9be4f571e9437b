import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { World, WorldEntry, WorldTool } from './world.ts';

/** A tool under its pair. */
export type Found = { readonly id: string; readonly tool: WorldTool };

/** What the oracle knows of a world: the tool that is meant, what became of each step, where values and labels come from. */
export class OracleFacts {
  readonly world: World;
  readonly past: readonly WorldEntry[];
  readonly args: JsonObject;
  readonly host: boolean;

  constructor(world: World) {
    this.world = world;
    this.past = world.past ?? [];
    this.args = world.call.arguments ?? {};
    this.host = world.caller.host ?? false;
  }

  agent(): string | undefined {
    const may = this.world.caller.agents ?? Object.keys(this.world.agents);
    return this.world.call.agent ?? (may.length === 1 ? may[0] : undefined);
  }

  isEngineUndo(): boolean {
    return this.world.call.engine === true && this.world.call.undoes !== undefined;
  }

  /** The tools that the name could mean and the agent reaches. */
  meant(): readonly Found[] {
    const { call, tools, caller, agents } = this.world;
    const agent = this.agent();
    if (agent === undefined) return [];
    const mayName = (caller.agents ?? Object.keys(agents)).includes(agent);
    return Object.entries(tools)
      .filter(([id]) => id === call.tool || (!this.isEngineUndo() && id.split('/')[1] === call.tool))
      .filter(([, tool]) => this.isEngineUndo() || (mayName && (tool.agents ?? Object.keys(agents)).includes(agent)))
      .map(([id, tool]) => ({ id, tool }));
  }

  found(): Found | undefined {
    const [only, ...others] = this.meant();
    return others.length === 0 && only?.tool.pin === undefined ? only : undefined;
  }

  properties(tool: WorldTool): Readonly<Record<string, { readonly type?: string; readonly format?: string }>> {
    return (tool.input?.['properties'] ?? {}) as Record<string, { type?: string; format?: string }>;
  }

  allowed(id: string): readonly number[] {
    return [...this.past.keys()].filter((step) => this.isAllowed(step) && this.past[step]?.tool === id);
  }

  isAllowed(step: number): boolean {
    return this.past[step] !== undefined && (this.past[step]?.decision ?? 'allow') === 'allow';
  }

  /** As those who are believed for it say. */
  outcome(step: number): string | undefined {
    if (!this.isAllowed(step) || this.past[step]?.believed === false) {
      return this.undosOf(step).some((undo) => this.outcome(undo) === 'ran') ? 'compensated' : undefined;
    }
    const undone = this.undosOf(step).some((undo) => this.outcome(undo) === 'ran');
    return undone ? 'compensated' : this.past[step]?.outcome;
  }

  undosOf(step: number): readonly number[] {
    return [...this.past.keys()].filter((each) => this.past[each]?.undoes === step && this.isAllowed(each));
  }

  short(id: string): string {
    const name = id.split('/')[1];
    const namesakes = Object.keys(this.world.tools).filter((each) => each.split('/')[1] === name);
    return name !== undefined && namesakes.length === 1 ? name : id;
  }

  wasAllowed(id: string): boolean {
    return this.allowed(id).length > 0 || this.world.carried?.tools?.[id] !== undefined;
  }

  seen(step: number, field: string): JsonValue | undefined {
    return this.past[step]?.believed === false ? undefined : this.past[step]?.result?.[field];
  }

  sessionLabels(before: number = this.past.length): readonly string[] {
    const read = [...this.past.keys()]
      .filter((step) => step < before && this.isAllowed(step))
      .flatMap((step) => {
        const id = this.past[step]?.tool ?? '';
        return this.world.tools[id]?.reads_outside ? [`untrusted:${id.split('/')[1]}`] : [];
      });
    return [...read, ...(this.world.carried?.labels ?? [])];
  }

  privilege(agent: string | undefined): number {
    const known = agent === undefined ? undefined : this.world.agents[agent];
    return known === undefined ? -1 : (known.privilege ?? 0);
  }

  labels({ tool }: Found): readonly string[] {
    const labels = Object.values(this.world.call.labels ?? {}).flat();
    const needs = tool.privilege ?? 0;
    const agent = this.agent() ?? '';
    if (this.privilege(agent) < needs) labels.push(`agent:${agent}`);
    for (const name of Object.keys(this.args)) {
      const step = this.sourceStep(name);
      const source = step === undefined ? undefined : this.past[step];
      if (source !== undefined) {
        labels.push(...(source.labels ?? []));
        if (this.world.tools[source.tool]?.reads_outside) labels.push(`untrusted:${source.tool.split('/')[1]}`);
        const speaker = source.agent ?? 'desk';
        if (this.privilege(speaker) < needs) labels.push(`agent:${speaker}`);
      }
      if (!this.isTrusted(name)) labels.push(...this.sessionLabels());
    }
    return [...new Set(labels)].sort();
  }

  /** The step that the argument is said to come from, where the session has one. */
  sourceStep(name: string): number | undefined {
    if ((this.world.call.filled ?? []).includes(name) || this.isEngineUndo()) return undefined;
    const match = /^result:(\d+)(\..+)?$/.exec(this.world.call.origins?.[name] ?? '');
    const step = match === null ? undefined : Number(match[1]);
    return step !== undefined && this.past[step] !== undefined ? step : undefined;
  }

  isTrusted(name: string): boolean {
    if ((this.world.call.filled ?? []).includes(name) || this.isEngineUndo()) return true;
    const word = this.world.call.origins?.[name];
    if (word === 'reply' || word === 'context' || word === 'computed') return this.host;
    const value = this.args[name];
    const words = (this.world.call.turns ?? []).flatMap((turn) => turn.split(' '));
    const typed = words.some((each) => each === value || (typeof value === 'number' && Number(each) === value));
    if (word === 'typed') return this.host && typed;
    const field = /^result:\d+\.(.+)$/.exec(word ?? '')?.[1];
    const step = this.sourceStep(name);
    if (field === undefined || step === undefined || this.outcome(step) !== 'ran') return false;
    return this.seen(step, field) === this.args[name];
  }

  taints(found: Found): readonly string[] {
    const needs = found.tool.privilege ?? 0;
    return this.labels(found).filter((label) => !label.startsWith('agent:') || this.privilege(label.slice(6)) < needs);
  }

  /** What is wrong with the undo; `none` where it is bound, `no undo` where the call is none. */
  undoFlaw({ id }: Found): string {
    const { undoes } = this.world.call;
    if (undoes === undefined) return 'no undo';
    const step = this.past[undoes];
    if (step === undefined) return 'step';
    if (step.undoes !== undefined) return 'undo_of_undo';
    const undone = this.world.tools[step.tool];
    const undo = undone?.irreversible ? undefined : undone?.undo;
    if (typeof undo !== 'object' || undo.tool !== id) return 'tool';
    const outcome = this.outcome(undoes);
    const sources = Object.entries(undo.with);
    const safe = undo.safe === true && sources.every(([, source]) => source.startsWith('arguments.'));
    const happened = outcome === 'ran' || outcome === 'compensated' || (outcome === 'outcome_unknown' && safe);
    if (!happened) return 'outcome';
    const bound = sources.map(([name, source]) => {
      const [from, field] = source.split('.');
      const value = from === 'arguments' ? step.arguments?.[field ?? ''] : this.seen(undoes, field ?? '');
      return value !== undefined && this.args[name] === value;
    });
    if (bound.includes(false) || Object.keys(this.args).length !== sources.length) return 'arguments';
    const tried = this.undosOf(undoes).some((each) => this.outcome(each) !== 'failed');
    return outcome === 'compensated' || tried ? 'spent' : 'none';
  }

  isBound(found: Found): boolean {
    return this.undoFlaw(found) === 'none';
  }
}
