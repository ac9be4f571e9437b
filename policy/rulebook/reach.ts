import type { RecordFlow, RulebookRecord } from './record.ts';
import { successors } from './record.ts';

/** For each flow and node: can the tool be executed from here on (`hits`), can the flow's end be reached (`exits`). */
export interface Reach {
  readonly hits: readonly Uint8Array[];
  readonly exits: readonly Uint8Array[];
}

/** The flows that `roots` lead to, every one after the flows that it calls; calls that lead back are met half-way. */
export function calleeOrder(flows: readonly RecordFlow[], roots: readonly number[]): readonly number[] {
  const order: number[] = [];
  const state = new Uint8Array(flows.length);
  for (const root of roots) {
    if (state[root] !== 0) continue;
    const stack: { flow: number; callees: readonly number[]; next: number }[] = [];
    stack.push({ flow: root, callees: calleesOf(flows[root]), next: 0 });
    state[root] = 1;
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const callee = top.callees[top.next];
      top.next += 1;
      if (callee === undefined) {
        order.push(top.flow);
        stack.pop();
      } else if (state[callee] === 0) {
        state[callee] = 1;
        stack.push({ flow: callee, callees: calleesOf(flows[callee]), next: 0 });
      }
    }
  }
  return order;
}

/** The flows that a flow calls or starts. */
export function calleesOf(flow: RecordFlow | undefined): readonly number[] {
  const callees = new Set<number>();
  for (const node of flow?.nodes ?? []) {
    if (node.op === 'call' || node.op === 'fork' || node.op === 'recursion') callees.add(node.flow);
  }
  return [...callees];
}

/**
 * Where the tools that `executes` accepts can be reached from, refusing messages notwithstanding.
 * @param among the flows to look at, each after its callees
 */
export function reachOf(record: RulebookRecord, among: readonly number[], executes: (tool: string) => boolean): Reach {
  const hits: Uint8Array[] = [];
  const exits: Uint8Array[] = [];
  for (const index of among) {
    const length = record.flows[index]?.nodes.length ?? 0;
    hits[index] = new Uint8Array(length);
    exits[index] = new Uint8Array(length);
  }
  // Flows come after their callees, so one round settles all but the calls that lead back to where they came from.
  for (let again = true; again; ) {
    again = false;
    for (const index of among) {
      const flow = record.flows[index];
      if (flow !== undefined && settleFlow(flow, index, record, { hits, exits }, executes)) {
        again ||= flow.nodes.some((node) => node.op === 'recursion');
      }
    }
  }
  return { hits, exits };
}

/** Brings one flow's marks up to date; tells whether any changed. */
function settleFlow(
  flow: RecordFlow,
  index: number,
  record: RulebookRecord,
  reach: Reach,
  executes: (tool: string) => boolean,
): boolean {
  const hit = reach.hits[index];
  const exit = reach.exits[index];
  if (hit === undefined || exit === undefined) return false;
  const mark = (at: number): boolean => {
    const node = flow.nodes[at];
    if (node === undefined) return false;
    let hitsHere = hit[at] === 1 || ((node.op === 'execute' || node.op === 'answer') && executes(node.tool));
    let exitsHere = exit[at] === 1 || node.op === 'exit';
    let passes = true;
    if (node.op === 'call' || node.op === 'fork' || node.op === 'recursion') {
      const start = record.flows[node.flow]?.start ?? 0;
      hitsHere ||= reach.hits[node.flow]?.[start] === 1;
      passes = node.op !== 'call' || reach.exits[node.flow]?.[start] === 1;
    }
    if (passes) {
      for (const to of successors(node)) {
        hitsHere ||= hit[to] === 1;
        exitsHere ||= exit[to] === 1;
      }
    }
    if ((!hitsHere || hit[at] === 1) && (!exitsHere || exit[at] === 1)) return false;
    hit[at] = hitsHere ? 1 : 0;
    exit[at] = exitsHere ? 1 : 0;
    return true;
  };
  // Successors have lower indices, so one pass settles a flow without loops.
  const changed: number[] = [];
  for (const at of flow.nodes.keys()) if (mark(at)) changed.push(at);
  if (flow.loops && changed.length > 0) spread(flow, changed, mark);
  return changed.length > 0;
}

/** Marks anew what leads to a node that has changed, and so on: each node changes twice at most. */
function spread(flow: RecordFlow, changed: readonly number[], mark: (at: number) => boolean): void {
  const leading: number[][] = flow.nodes.map(() => []);
  for (const [at, node] of flow.nodes.entries()) for (const to of successors(node)) leading[to]?.push(at);
  const waiting = [...changed];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    for (const before of leading[at] ?? []) if (mark(before)) waiting.push(before);
  }
}
