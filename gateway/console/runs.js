import { timeOf } from './confirmation-card.js';
import { element, newId, termsOf } from './element.js';
import { settleForm } from './outcomes.js';
import { shownText } from './shown-text.js';

/** Undos that go no further without a person (docs/execution.md). */
const STOPPED = new Set(['needs_person', 'undo_unknown']);

const UNDO_STATES = {
  undo_pending: 'waits for its turn',
  undoing: 'is being undone',
  compensated: 'is undone',
  undo_unknown: 'was sent an undo, and nobody knows whether it was done',
  needs_person: 'could not be undone',
};

/** Runs whose undoing stopped. */
export function runsView(context) {
  const place = element('div', { class: 'cards' });
  return {
    heading: 'Runs that need a person',
    node: place,
    async refresh() {
      const { runs } = await context.api.get('/v1/runs?state=needs_person');
      const cards = runs.map((run) => runCard(run, context));
      place.replaceChildren(
        ...(cards.length > 0 ? cards : [element('p', { class: 'none' }, 'No run needs a person.')]),
      );
      await Promise.all(runs.map((run, at) => fill(cards[at], run, context)));
    },
    tick: () => undefined,
    again: false,
  };
}

function runCard({ run, caller, agent, why, updated }) {
  const heading = newId();
  return element(
    'article',
    { class: 'card', 'aria-labelledby': heading, 'data-id': run },
    element('h2', { id: heading }, 'Run ', shownText(run)),
    termsOf([
      ['Agent', shownText(agent)],
      ['Credential', shownText(caller)],
      ['Since', timeOf(updated)],
      ...(why === undefined ? [] : [['Why', shownText(why)]]),
    ]),
    element('div', { class: 'steps' }),
  );
}

/** The steps of a run, and what can be said of those that are stuck. */
async function fill(card, { run, caller }, context) {
  const steps = card.querySelector('.steps');
  const path = `/v1/runs/${encodeURIComponent(run)}`;
  try {
    const report = await context.api.get(`${path}?caller=${encodeURIComponent(caller)}`);
    const settle = { path: `${path}/settle`, caller, after: () => fill(card, { run, caller }, context) };
    const known = new Set(report.undos.map(({ step }) => step));
    const unsaid = report.left.filter(({ step, why }) => !known.has(step) && !why.startsWith('left by '));
    const needed = report.state === 'needs_person';
    steps.replaceChildren(
      element(
        'p',
        { class: 'state' },
        needed ? 'It waits for your word.' : `It goes on by itself: ${report.state.replaceAll('_', ' ')}.`,
      ),
      ...report.undos.map((undo) => undoLines(undo, needed, settle, context)),
      ...unsaid.map((left) => leftLines(left, needed, settle, context)),
    );
  } catch (fault) {
    steps.replaceChildren(element('p', { class: 'warning' }, fault.message));
  }
}

function undoLines(
  { step, tool, undo_tool: undoTool, state, attempts, why },
  needed,
  { path, caller, after },
  context,
) {
  const what = `Step ${step} ${UNDO_STATES[state] ?? state}.`;
  const lines = element(
    'section',
    {},
    element('h3', {}, `Step ${step}: `, shownText(tool)),
    element(
      'p',
      {},
      what,
      ' Its undo is ',
      shownText(undoTool),
      `, tried ${attempts} ${attempts === 1 ? 'time' : 'times'}.`,
    ),
    ...(why === undefined ? [] : [element('p', {}, 'Why: ', shownText(why))]),
  );
  if (!needed || !STOPPED.has(state)) return lines;
  const said = (as) => ({ caller, step, as });
  const choices = [
    {
      label: `Record that step ${step} was undone by hand`,
      body: said('undone'),
      done: `You recorded that step ${step} was undone.`,
    },
    {
      label: `Try the undo of step ${step} again`,
      body: said('retry'),
      done: `The undo of step ${step} is tried again.`,
    },
    { label: `Leave step ${step} done`, body: said('left'), done: `Step ${step} stays done.` },
  ];
  lines.append(settleForm(context, { path, choices: choices.map((choice) => ({ ...choice, class: 'plain' })), after }));
  return lines;
}

function leftLines({ step, tool, why }, needed, { path, caller, after }, context) {
  const lines = element(
    'section',
    {},
    element('h3', {}, `Step ${step}: `, shownText(tool)),
    element('p', {}, 'It stays done: ', shownText(why), '.'),
  );
  if (!needed) return lines;
  const choice = {
    label: `Leave step ${step} done`,
    body: { caller, step, as: 'left' },
    done: `Step ${step} stays done.`,
    class: 'plain',
  };
  lines.append(settleForm(context, { path, choices: [choice], after }));
  return lines;
}
