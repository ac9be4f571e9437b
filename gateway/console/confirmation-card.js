import { element, newId, termsOf } from './element.js';
import { ConsoleFault } from './gateway-api.js';
import { shownText, shownWords } from './shown-text.js';
import { originInWords, shownValue } from './shown-value.js';

const MAX_NOTE = 2000;

/** What a state means to a person. */
const STATES = {
  pending: 'waits for a decision',
  approved: 'approved; the call was not repeated yet',
  spent: 'approved, and used for its call',
  denied: 'denied',
};

const CONFIRMATIONS = {
  expired: 'An earlier approval of this call has expired.',
  other_call: 'The call brought an approval that is for another call.',
  spent: 'The call brought an approval that was used before.',
  other_point: 'Since an earlier approval the session has moved on.',
  invalid: 'The call brought an approval that is none.',
};

/** Members of `shown` that have their own place on the card. */
const PLACED = new Set(['tool', 'agent', 'reasons', 'sentences', 'arguments', 'question', 'confirmation']);

/**
 * One confirmation with all that a person must see (docs/check.md, "Person"), and what they can do about it.
 * `tick` brings the countdown to now; `close` ends the deciding, with a word on what became of it.
 */
export function confirmationCard(record, { api, say, fail }) {
  const { shown } = record;
  const values = shown.arguments.map(({ name, value, origin }) => ({ name, origin, ...shownValue(value) }));
  const heading = newId();
  const node = element(
    'article',
    { class: 'card', 'aria-labelledby': heading, 'data-id': record.id },
    element('h2', { id: heading, tabindex: '-1' }, shownText(record.tool)),
    ...questionOf(shown),
    termsOf([
      ['Agent', shownText(record.agent)],
      ['Credential', shownText(record.caller)],
      ['Session', shownText(record.session), `, step ${record.step}`],
      ...(record.run === undefined ? [] : [['Run', shownText(record.run)]]),
      ...(record.undoes === undefined ? [] : [['Undoes', `step ${record.undoes}`]]),
      ['Asked', timeOf(record.created)],
      ...restOf(shown),
    ]),
    element('h3', {}, 'Arguments'),
    argumentsOf(values),
    element('h3', {}, 'Why a person is asked'),
    element(
      'ul',
      { class: 'reasons' },
      ...(shown.sentences ?? shown.reasons).map((why) => element('li', {}, shownText(why))),
    ),
  );
  const end = element('div', { class: 'end' });
  node.append(end);
  const live = record.state === 'pending' && record.expires > api.now();
  if (!live) {
    end.append(...decidedLines(record));
    return { node, tick: () => undefined, close: () => undefined };
  }
  return { node, ...decision(record, { api, say, fail, values, end }) };
}

function questionOf({ question, confirmation }) {
  const lines = [];
  if (typeof question === 'string') lines.push(element('p', { class: 'question' }, shownText(question)));
  if (confirmation !== undefined)
    lines.push(element('p', {}, CONFIRMATIONS[confirmation] ?? shownText(String(confirmation))));
  return lines;
}

function restOf(shown) {
  return Object.entries(shown)
    .filter(([name]) => !PLACED.has(name))
    .map(([name, value]) => [shownText(name), shownValue(value).node]);
}

function argumentsOf(values) {
  if (values.length === 0) return element('p', {}, 'The call has no arguments.');
  return element(
    'dl',
    { class: 'arguments' },
    ...values.map(({ name, origin, node }) =>
      element(
        'div',
        { class: origin === 'model' ? 'argument doubtful' : 'argument' },
        element('dt', {}, shownText(name)),
        element(
          'dd',
          {},
          node,
          element('p', { class: 'origin' }, originInWords(origin), ' (', element('code', {}, shownText(origin)), ')'),
        ),
      ),
    ),
  );
}

function decidedLines(record) {
  const { state, approver, note, decided, expires } = record;
  const lapsed = state === 'pending';
  const what = lapsed
    ? `expired ${timeText(expires)}; nobody decided it. The call must be made again`
    : (STATES[state] ?? state);
  const lines = [element('p', { class: `state ${lapsed ? 'expired' : state}` }, `This call is ${what}.`)];
  if (approver !== undefined) {
    lines.push(
      element('p', {}, 'By ', shownText(approver), ...(decided === undefined ? [] : [', ', timeOf(decided)]), '.'),
    );
  }
  if (note !== undefined) lines.push(element('p', {}, 'Note: ', shownText(note)));
  return lines;
}

function decision(record, { api, say, fail, values, end }) {
  const { id, tool, expires } = record;
  const note = element('textarea', { id: newId(), rows: '2', maxlength: String(MAX_NOTE) });
  const left = element('p', { class: 'left', role: 'timer' });
  const hint = element('p', { class: 'hint', role: 'status' });
  const name = shownWords(tool);
  const approve = element(
    'button',
    { type: 'button', class: 'yes', click: () => decide('approve') },
    `Approve this call of ${name}`,
  );
  const deny = element(
    'button',
    { type: 'button', class: 'no', click: () => decide('deny') },
    `Deny this call of ${name}`,
  );
  const label = element('label', { for: note.id }, 'Note, for the record (may be left out)');
  const close = (...lines) => {
    closed = true;
    end.replaceChildren(...lines);
  };
  end.append(left, label, note, hint, element('div', { class: 'buttons' }, approve, deny));
  let closed = false;
  let busy = false;

  async function decide(act) {
    if (busy || closed) return;
    const unseen = act === 'approve' ? values.filter(({ isSeen }) => !isSeen()) : [];
    if (unseen.length > 0) {
      for (const { open } of unseen) open();
      hint.textContent = `Not all of ${unseen.map((value) => `"${shownWords(value.name)}"`).join(', ')} was shown. It is now: read it, then approve.`;
      unseen[0].node.scrollIntoView({ block: 'nearest' });
      return;
    }
    busy = true;
    approve.disabled = true;
    deny.disabled = true;
    try {
      const text = note.value.trim();
      await api.post(`/v1/confirmations/${encodeURIComponent(id)}/${act}`, text === '' ? undefined : { note: text });
      const done =
        act === 'approve'
          ? 'You approved this call. It runs when it is made again.'
          : 'You denied this call. It will not run.';
      const line = element('p', { class: `state ${act === 'approve' ? 'approved' : 'denied'}`, tabindex: '-1' }, done);
      close(line);
      line.focus();
      say(`${name}: ${done}`);
    } catch (fault) {
      fail(fault);
      await showAsItStands(fault);
    } finally {
      busy = false;
      approve.disabled = false;
      deny.disabled = false;
    }
  }

  /** After a conflict, or where no answer came, what the gateway has is what counts. */
  async function showAsItStands(fault) {
    if (!(fault instanceof ConsoleFault) || (fault.status !== 409 && fault.status !== 0)) return;
    const now = await api.get(`/v1/confirmations/${encodeURIComponent(id)}`).catch(() => undefined);
    if (now !== undefined && (now.state !== 'pending' || now.expires <= api.now())) close(...decidedLines(now));
  }

  const tick = () => {
    if (closed) return;
    const seconds = Math.ceil((expires - api.now()) / 1000);
    if (seconds > 0) left.textContent = `Expires in ${durationText(seconds)} (${timeText(expires)})`;
    else close(...decidedLines(record));
  };
  tick();
  return { tick, close: (why) => (closed || busy ? undefined : close(element('p', { class: 'state' }, why))) };
}

/** A moment in milliseconds, in the reader's own time. */
export function timeOf(ms) {
  return element('time', { datetime: new Date(ms).toISOString() }, timeText(ms));
}

function timeText(ms) {
  return new Date(ms).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
}

function durationText(seconds) {
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}
