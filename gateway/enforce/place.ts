import type { Place } from './allowed.ts';
import type { NextEntry } from './append.ts';

/** Where an appended entry stands. */
export function placeOf(appended: NextEntry): Place {
  const { body, record: key, linkText: link } = appended;
  const { step, agent, run, undoes } = body;
  const at = { key, sid: key.sid, step, link, agent, own: true };
  return { ...at, ...(run === undefined ? {} : { run }), ...(undoes === undefined ? {} : { undoes }) };
}
