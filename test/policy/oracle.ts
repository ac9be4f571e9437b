import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { type Found, OracleFacts } from './oracle-facts.ts';
import { NOW_MS, POLICY, SESSION, type World, type WorldConfirmation } from './world.ts';

/**
 * A second implementation of the check, written from docs/check.md alone and for small worlds: schemas of strings and
 * numbers, destinations that hold an `@`, turns of words between blanks. It reads the world as it is told, keeps no view of
 * the session, asks every row, and then takes the first answer.
 */

export interface OracleAnswer {
  readonly decision: 'allow' | 'confirm' | 'refuse';
  readonly reasons: readonly string[];
  /** What else of the answer is foretold. */
  readonly told?: JsonObject;
  readonly waived?: boolean;
}

/** Answers of all rows that answer, by name, in their order. */
export function askEveryRow(world: World): readonly (readonly [string, OracleAnswer])[] {
  const oracle = new Oracle(world);
  const first = oracle.catalogue();
  const found = oracle.found();
  if (found === undefined) return first === undefined ? [] : [['catalogue', first]];
  const rows: readonly (readonly [string, OracleAnswer | undefined])[] = [
    ['catalogue', first],
    ['history', world.fault === undefined ? undefined : refuse('history_invalid')],
    ['schema', oracle.schema(found)],
    ['destination', oracle.destination(found)],
    ['order', oracle.order(found)],
    ['undo', oracle.undo(found)],
    [
      'conditions',
      oracle.isBound(found) || world.conditions === undefined ? undefined : refuse(world.conditions.reason),
    ],
    ['rulebook', oracle.rulebook(found)],
    ['taint', oracle.taint(found)],
    [
      'confirmation',
      oracle.confirmationFlaw(found) === 'none' ? { decision: 'allow', reasons: ['confirmed'] } : undefined,
    ],
    ['person', oracle.person(found)],
    ['compensation', oracle.isBound(found) ? oracle.allow(found, 'compensation') : undefined],
    ['allow', oracle.allow(found, 'allow')],
  ];
  return rows.flatMap(([name, answer]) => (answer === undefined ? [] : [[name, answer] as const]));
}

/** The labels that the entry of the call must carry. */
export function labelsOfCall(world: World): readonly string[] {
  const oracle = new Oracle(world);
  const found = oracle.found();
  return found === undefined ? [] : oracle.labels(found);
}

/** Why a person is asked about the call, were it to come to that. */
export function reasonsOfCall(world: World): readonly string[] {
  const oracle = new Oracle(world);
  const found = oracle.found();
  return found === undefined ? [] : oracle.reasons(found);
}

function refuse(reason: string, told?: JsonObject): OracleAnswer {
  return { decision: 'refuse', reasons: [reason], ...(told === undefined ? {} : { told }) };
}

class Oracle extends OracleFacts {
  catalogue(): OracleAnswer | undefined {
    if (this.agent() === undefined) return refuse('agent_required');
    const found = this.found();
    const meant = this.meant();
    if (found === undefined) {
      if (meant.length > 1) return refuse('unknown_tool', { candidates: meant.map(({ id }) => id) });
      const pin = meant[0]?.tool.pin;
      return refuse('unknown_tool', pin === undefined ? undefined : { pin });
    }
    const lapsed = this.world.settings?.lapsed;
    return lapsed === 'all' || (lapsed === 'writes' && found.tool.writes) ? refuse('licence_lapsed') : undefined;
  }

  schema({ tool }: Found): OracleAnswer | undefined {
    const declared = this.properties(tool);
    const required = (tool.input?.['required'] ?? []) as readonly string[];
    const undeclared = Object.keys(this.args).some((name) => declared[name] === undefined);
    const missing = required.some((name) => this.args[name] === undefined);
    const other = Object.entries(this.args).some(([name, value]) => typeof value !== declared[name]?.type);
    return undeclared || missing || other ? refuse('argument_schema') : undefined;
  }

  destination({ tool }: Found): OracleAnswer | undefined {
    if (tool.sends_out) return undefined;
    const pieces = Object.values(this.args).filter((value) => typeof value === 'string' && value.includes('@'));
    return pieces.length === 0 ? undefined : refuse('undeclared_destination', { destinations: [...new Set(pieces)] });
  }

  order({ id, tool }: Found): OracleAnswer | undefined {
    for (const { tool: before, bind } of tool.after ?? []) {
      const rule = `after ${this.short(before)}`;
      if (!this.allowed(before).some((step) => this.outcome(step) === 'ran')) return refuse('order_rule', { rule });
      for (const [argument, field] of Object.entries(bind ?? {})) {
        if (!this.isArgumentBound(before, argument, field)) return refuse('order_rule', { rule, bind: argument });
      }
    }
    for (const other of tool.not_after ?? []) {
      const met = other === 'untrusted' ? this.sessionLabels().length > 0 : this.wasAllowed(other);
      if (met) return refuse('order_rule', { rule: `not_after ${this.short(other)}` });
    }
    if (tool.at_most !== undefined) {
      const here = this.allowed(id).filter((step) => this.outcome(step) !== 'failed').length;
      const count = here + (this.world.carried?.tools?.[id] ?? 0);
      if (count >= tool.at_most) return refuse('order_rule', { rule: `at_most ${tool.at_most}` });
    }
    const { run, undoes } = this.world.call;
    const ended = run !== undefined && undoes === undefined && (this.world.ended_runs ?? []).includes(run);
    return ended ? refuse('run_ended', { run }) : undefined;
  }

  isArgumentBound(before: string, argument: string, field: string): boolean {
    const { undoes } = this.world.call;
    const undo = undoes === undefined ? undefined : this.past[undoes];
    if (undoes !== undefined && undo?.tool === before && this.outcome(undoes) === 'ran') {
      const declared = this.world.tools[before]?.undo;
      if (typeof declared === 'object' && declared.with[argument] === `result.${field}`) return true;
    }
    const value = this.args[argument];
    const match = /^result:(\d+)\.(.+)$/.exec(this.world.call.origins?.[argument] ?? '');
    if (match === null || value === undefined || match[2] !== field) return false;
    const step = Number(match[1]);
    if (this.past[step]?.tool !== before || this.outcome(step) !== 'ran') return false;
    const seen = this.seen(step, field);
    return seen === undefined ? this.host : seen === value;
  }

  undo(found: Found): OracleAnswer | undefined {
    const flaw = this.undoFlaw(found);
    if (flaw === 'none' || flaw === 'no undo') return undefined;
    return flaw === 'spent' ? refuse('compensation_spent') : refuse('compensation_mismatch', { differs: flaw });
  }

  rulebook(found: Found): OracleAnswer | undefined {
    const { rulebook } = this.world;
    if (rulebook === undefined || 'question' in rulebook || this.isBound(found)) return undefined;
    return refuse(rulebook.reason);
  }

  taint(found: Found): OracleAnswer | undefined {
    if (!found.tool.writes || this.world.settings?.taint_policy !== 'refuse') return undefined;
    const labels = this.taints(found);
    return labels.length === 0 ? undefined : refuse('tainted_call', { labels });
  }

  /** Every reason but `write` itself, and then that one where no other stands and nothing waives it. */
  reasons(found: Found): readonly string[] {
    const stand = this.reasonsButWrite(found);
    const asks = found.tool.writes && !this.isApprovedUndo(found) && found.tool.confirm !== 'reasons';
    return stand.length === 0 && asks ? ['write'] : stand;
  }

  isApprovedUndo(found: Found): boolean {
    return this.isBound(found) && (this.host || this.world.call.engine === true);
  }

  reasonsButWrite(found: Found): readonly string[] {
    const { tool } = found;
    const { rulebook, call } = this.world;
    const question = rulebook !== undefined && 'question' in rulebook ? ['gate_clarify'] : [];
    if (!tool.writes || this.isApprovedUndo(found)) return question;
    const asked = Object.keys(this.properties(tool)).filter(
      (name) => this.args[name] !== undefined && !this.isTrusted(name),
    );
    const undoable = [...this.past.entries()].filter(([step, entry]) => {
      const written = this.world.tools[entry.tool];
      const outcome = this.outcome(step);
      return (
        this.isAllowed(step) &&
        entry.run === call.run &&
        entry.undoes === undefined &&
        written?.writes === true &&
        !written.irreversible &&
        typeof written.undo === 'object' &&
        outcome !== 'failed' &&
        outcome !== 'compensated'
      );
    });
    return [
      ...question,
      ...(asked.length === 0 ? [] : [`argument_origin: ${asked.join(', ')}`]),
      ...(this.taints(found).length === 0 ? [] : ['tainted_call']),
      ...(tool.irreversible && call.run !== undefined && undoable.length > 0 ? ['irreversible_pivot'] : []),
      ...(Object.values(this.properties(tool)).some(({ format }) => format !== undefined) ? ['schema_partial'] : []),
    ];
  }

  /** What keeps a confirmation from covering the call; `none` where it does, `absent` where there is none. */
  confirmationFlaw(found: Found): string {
    const given = this.world.confirmation;
    if (given === undefined) return 'absent';
    if (given === 'invalid') return 'invalid';
    if ((given.expires ?? NOW_MS + 1) <= NOW_MS) return 'expired';
    if (!this.isCallOf(given, found)) return 'other_call';
    if (given.spent) return 'spent';
    return this.isPointOf(given) ? 'none' : 'other_point';
  }

  isCallOf(given: WorldConfirmation, found: Found): boolean {
    const { call, caller } = this.world;
    const same = [
      [given.tool, found.id],
      [given.agent, this.agent()],
      [sorted(given.arguments), sorted(this.args)],
      [sorted(given.origins), sorted(call.origins ?? {})],
      [given.labels ?? [], this.labels(found)],
      [given.run, call.run],
      [given.undoes, call.undoes],
      [given.session ?? SESSION, SESSION],
      [given.policy ?? POLICY, POLICY],
      [given.caller ?? caller.name ?? 'app', caller.name ?? 'app'],
    ].every(([one, other]) => JSON.stringify(one) === JSON.stringify(other));
    const { rulebook } = this.world;
    const asks = rulebook !== undefined && 'question' in rulebook ? rulebook.question : undefined;
    if (asks !== undefined && given.question !== undefined && given.question !== asks) return false;
    return same && this.reasons(found).every((reason) => given.reasons.includes(reason));
  }

  isPointOf(given: WorldConfirmation): boolean {
    const last = this.past.length - 1;
    if (given.step > last) return false;
    if (given.point !== 'until_write') return (given.link ?? `link-${given.step}`) === `link-${last}`;
    return [...this.past.entries()].every(([step, entry]) => {
      if (step <= given.step || !this.isAllowed(step)) return true;
      const tool = this.world.tools[entry.tool];
      const label = `untrusted:${entry.tool.split('/')[1]}`;
      return !tool?.writes && (!tool?.reads_outside || this.sessionLabels(step).includes(label));
    });
  }

  person(found: Found): OracleAnswer | undefined {
    const reasons = this.reasons(found);
    if (reasons.length === 0) return undefined;
    const flaw = this.confirmationFlaw(found);
    return { decision: 'confirm', reasons, told: flaw === 'absent' ? {} : { confirmation: flaw } };
  }

  allow(found: Found, reason: string): OracleAnswer {
    const waives = found.tool.writes === true && !this.isApprovedUndo(found) && found.tool.confirm === 'reasons';
    return { decision: 'allow', reasons: [reason], waived: waives && this.reasonsButWrite(found).length === 0 };
  }
}

function sorted(value: JsonObject): readonly (readonly [string, JsonValue])[] {
  return Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
}
