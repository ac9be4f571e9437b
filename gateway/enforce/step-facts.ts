import type { StepFacts } from '../../policy/call.ts';
import { parseOrigin } from '../../policy/origins/parse-origin.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import type { EntryBody, Outcome } from '../../receipts/history.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import type { Gateway } from '../gateway.ts';
import type { StepRecord } from '../store/port.ts';
import type { ReadCall } from './read-call.ts';

/** The earlier steps that a call names, in `undoes` and in its origins; most calls name none. */
export function namedSteps(read: ReadCall): readonly number[] {
  const steps = new Set<number>();
  if (read.call.undoes !== undefined) steps.add(read.call.undoes);
  for (const word of Object.values(read.call.origins)) {
    const origin = parseOrigin(word);
    if (origin.kind === 'result') steps.add(origin.step);
  }
  return [...steps];
}

/** What the check reads of an entry that the store kept. */
export function stepFactsOf(gateway: Gateway, sid: string, record: StepRecord): StepFacts {
  const body = readBody(record);
  const { fields } = record;
  return {
    step: record.step,
    link: record.link,
    toolId: body.tool,
    agent: body.agent,
    outcome: record.seen ? outcomeOf(record.outcome) : undefined,
    labels: body.labels,
    undoAllowed: record.undoAllowed,
    compareField: (field, value) => {
      if (!record.seen || fields === undefined) return 'unseen';
      if (!Object.hasOwn(fields, field)) {
        // The result was read: a field that it declares and does not have is seen to be absent.
        const declared = gateway.loaded.catalogue.tools.get(body.tool)?.result?.declares(field);
        return declared ? 'other' : 'unseen';
      }
      return fields[field] === fieldDigest(gateway, sid, record.step, field, value) ? 'equal' : 'other';
    },
    ...(body.undoes === undefined ? {} : { undoes: body.undoes }),
    ...(body.run === undefined ? {} : { run: body.run }),
    ...(record.undoArguments === undefined ? {} : { undoArguments: record.undoArguments }),
  };
}

/** The keyed digest by which a value is later known again as a field of a result; of no use for guessing it. */
export function fieldDigest(gateway: Gateway, sid: string, step: number, field: string, value: JsonValue): string {
  return gateway.keyed(canonicalize(['field', sid, step, field, value]));
}

/** The body of an entry that this gateway wrote itself. */
export function readBody(record: StepRecord): EntryBody {
  return JSON.parse(record.body) as EntryBody;
}

/** An outcome word of the store, typed. */
export function outcomeOf(word: string | undefined): Outcome | undefined {
  return word === 'ran' || word === 'failed' || word === 'outcome_unknown' || word === 'compensated' ? word : undefined;
}
