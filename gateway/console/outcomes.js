import { timeOf } from './confirmation-card.js';
import { element, newId, termsOf } from './element.js';
import { shownText, shownWords } from './shown-text.js';

const MAX_REASON = 500;

/** Calls that were sent and of which nobody knows whether they ran. */
export function outcomesView(context) {
  const place = element('div', { class: 'cards' });
  return {
    heading: 'Calls whose outcome is not known',
    node: place,
    async refresh() {
      const { outcomes } = await context.api.get('/v1/outcomes?state=outcome_unknown');
      const cards = outcomes.map((outcome) => outcomeCard(outcome, context));
      place.replaceChildren(
        ...(cards.length > 0 ? cards : [element('p', { class: 'none' }, 'Every outcome is known.')]),
      );
    },
    tick: () => undefined,
    again: false,
  };
}

function outcomeCard(outcome, context) {
  const { id, tool, agent, caller, session, step, run, undoes, why, created, idempotency_key: key } = outcome;
  const heading = newId();
  const name = shownWords(tool);
  return element(
    'article',
    { class: 'card', 'aria-labelledby': heading, 'data-id': id },
    element('h2', { id: heading }, shownText(tool)),
    element(
      'p',
      {},
      'The call was sent, and no answer says whether it was done. Find out at the backend, then record it.',
    ),
    termsOf([
      ['Agent', shownText(agent)],
      ['Credential', shownText(caller)],
      ['Session', ...(session === undefined ? ['no longer kept'] : [shownText(session)]), `, step ${step}`],
      ...(run === undefined ? [] : [['Run', shownText(run)]]),
      ...(undoes === undefined ? [] : [['Undoes', `step ${undoes}`]]),
      ['Sent', timeOf(created)],
      ...(why === undefined ? [] : [['Why unknown', shownText(why)]]),
      ...(key === undefined ? [] : [['Key sent', element('code', {}, shownText(key))]]),
    ]),
    settleForm(context, {
      path: `/v1/outcomes/${encodeURIComponent(id)}/settle`,
      choices: [
        {
          label: `Record that ${name} ran`,
          body: { outcome: 'ran' },
          done: 'You recorded that this call ran.',
          class: 'yes',
        },
        {
          label: `Record that ${name} failed`,
          body: { outcome: 'failed' },
          done: 'You recorded that this call failed.',
          class: 'no',
        },
      ],
    }),
  );
}

/**
 * A reason, which must be given, and one button for each thing that can be said. `path` is where it is said; each choice
 * has the members of its `body` beside the reason, and what the page says once it is `done`.
 */
export function settleForm({ api, say, fail }, { path, choices, after }) {
  const reason = element('textarea', { id: newId(), rows: '2', maxlength: String(MAX_REASON), required: true });
  const hint = element('p', { class: 'hint', role: 'status' });
  const form = element('div', { class: 'end' });
  const buttons = choices.map((choice) =>
    element('button', { type: 'button', class: choice.class, click: () => settle(choice) }, choice.label),
  );

  async function settle({ body, done }) {
    const text = reason.value.trim();
    if (text === '') {
      hint.textContent = 'Say how you know: a reason is needed, and is kept with what you record.';
      reason.focus();
      return;
    }
    for (const button of buttons) button.disabled = true;
    try {
      await api.post(path, { ...body, reason: text });
      const line = element('p', { class: 'state approved', tabindex: '-1' }, done);
      form.replaceChildren(line);
      line.focus();
      say(done);
      await after?.();
    } catch (fault) {
      fail(fault);
    } finally {
      for (const button of buttons) button.disabled = false;
    }
  }

  const label = element('label', { for: reason.id }, 'How you know, or why (needed)');
  form.append(label, reason, hint, element('div', { class: 'buttons' }, ...buttons));
  return form;
}
