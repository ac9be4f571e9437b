import type { Block, FlowSyntax, Statement } from './syntax.ts';

/** How flows call each other, by index. */
export interface CallTable {
  /** The strongly connected component that each flow is in. */
  readonly component: readonly number[];
  /** Whether a flow lies on a cycle of calls. */
  readonly cyclic: readonly boolean[];
  /** Whether a flow does more than wait for a person. */
  readonly consequential: readonly boolean[];
  /** Whether the first thing that a flow does is to wait for a person. */
  readonly begins: readonly boolean[];
  /** The longest chain of calls below each flow, itself included; a cycle counts once. */
  readonly depth: readonly number[];
  readonly callers: readonly (readonly number[])[];
}

/** Every statement of a block at any depth, in order. Nesting is bounded by the outline. */
function* statementsOf(block: Block): Generator<Statement> {
  for (const statement of block) {
    yield statement;
    for (const inner of innerBlocks(statement)) yield* statementsOf(inner);
  }
}

function innerBlocks(statement: Statement): readonly Block[] {
  switch (statement.kind) {
    case 'if': {
      const bodies = statement.branches.map((branch) => branch.body);
      return statement.otherwise === undefined ? bodies : [...bodies, statement.otherwise];
    }
    case 'when':
      return statement.branches.flatMap((branch) => [branch.trigger, branch.body]);
    case 'choice':
      return statement.branches;
    case 'while':
      return [statement.body];
    default:
      return [];
  }
}

/** Works out the call table of all flows of a rulebook. */
export function buildCallTable(flows: readonly FlowSyntax[], indexOf: ReadonlyMap<string, number>): CallTable {
  const callees = flows.map((flow) => {
    const found = new Set<number>();
    for (const statement of statementsOf(flow.body)) {
      const index = statement.kind === 'call' ? indexOf.get(statement.name) : undefined;
      if (index !== undefined) found.add(index);
    }
    return [...found];
  });
  const { component, order } = components(callees);
  const callers: number[][] = flows.map(() => []);
  const size = new Map<number, number>();
  for (const one of component) size.set(one, (size.get(one) ?? 0) + 1);
  const cyclic = flows.map(
    (_flow, index) => (size.get(component[index] ?? 0) ?? 0) > 1 || (callees[index] ?? []).includes(index),
  );
  for (const [index, list] of callees.entries()) for (const callee of list) callers[callee]?.push(index);
  const depth: number[] = flows.map(() => 1);
  const consequential = flows.map((flow) => hasConsequence(flow));
  const begins: boolean[] = flows.map(() => false);
  for (const index of order) {
    const flow = flows[index];
    if (flow === undefined) continue;
    for (const callee of callees[index] ?? []) {
      const below = depth[callee] ?? 1;
      if (component[callee] !== component[index]) depth[index] = Math.max(depth[index] ?? 1, below + 1);
      if (consequential[callee] === true || cyclic[index] === true) consequential[index] = true;
    }
    begins[index] = beginsWithTurn(flow.body, (name) => begins[indexOf.get(name) ?? -1] === true);
  }
  return { component, cyclic, consequential, begins, depth, callers };
}

function hasConsequence(flow: FlowSyntax): boolean {
  for (const statement of statementsOf(flow.body)) {
    if (statement.kind === 'say' || statement.kind === 'execute') return true;
    if (statement.kind === 'leave' && (statement.word === 'stop' || statement.word === 'abort')) return true;
    if (statement.kind === 'call' && statement.form === 'start') return true;
  }
  return false;
}

function beginsWithTurn(block: Block, called: (name: string) => boolean): boolean {
  for (const statement of block) {
    switch (statement.kind) {
      case 'nothing':
      case 'label':
        continue;
      case 'turn':
      case 'when':
        return true;
      case 'call':
        if (statement.form === 'value') {
          if (called(statement.name)) return true;
          continue;
        }
        return statement.form === 'user' || (statement.form === 'await' && called(statement.name));
      case 'if': {
        const { otherwise } = statement;
        const bodies = statement.branches.map((branch) => branch.body);
        return otherwise !== undefined && [...bodies, otherwise].every((body) => beginsWithTurn(body, called));
      }
      case 'choice':
        return statement.branches.every((branch) => beginsWithTurn(branch, called));
      default:
        return false;
    }
  }
  return false;
}

/** Tarjan's algorithm without recursion; `order` lists every flow after the flows that it calls. */
function components(callees: readonly (readonly number[])[]): { component: number[]; order: number[] } {
  const component: number[] = callees.map(() => -1);
  const seen: number[] = callees.map(() => -1);
  const low: number[] = callees.map(() => 0);
  const order: number[] = [];
  const path: number[] = [];
  let counter = 0;
  let components = 0;
  for (const root of callees.keys()) {
    if (seen[root] !== -1) continue;
    const stack: { node: number; next: number }[] = [{ node: root, next: 0 }];
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const { node } = top;
      if (top.next === 0) {
        seen[node] = counter;
        low[node] = counter;
        counter += 1;
        path.push(node);
      }
      const callee = callees[node]?.[top.next];
      if (callee !== undefined) {
        top.next += 1;
        if (seen[callee] === -1) stack.push({ node: callee, next: 0 });
        else if (component[callee] === -1) low[node] = Math.min(low[node] ?? 0, seen[callee] ?? 0);
        continue;
      }
      if (top.next === 0) top.next = 1;
      stack.pop();
      const parent = stack.at(-1);
      if (parent !== undefined) low[parent.node] = Math.min(low[parent.node] ?? 0, low[node] ?? 0);
      if (low[node] === seen[node]) {
        for (let member = path.pop(); member !== undefined; member = path.pop()) {
          component[member] = components;
          order.push(member);
          if (member === node) break;
        }
        components += 1;
      }
    }
  }
  return { component, order };
}
