import { confirmationCard } from './confirmation-card.js';
import { element } from './element.js';

/**
 * What waits for a person. What is on the screen never moves: a new call comes at the end, and one that somebody else
 * decided stays where it is and says so, for a button that slips under a finger decides the wrong call.
 */
export function waitingView(context) {
  const { api, say } = context;
  const cards = new Map();
  const none = element('p', { class: 'none' }, 'No call waits for a person.');
  const list = element('div', { class: 'cards' }, none);

  async function refresh() {
    const { confirmations } = await api.get('/v1/confirmations?state=pending');
    const waiting = new Set(confirmations.map(({ id }) => id));
    const fresh = confirmations.filter(({ id }) => !cards.has(id));
    for (const record of fresh) {
      const card = confirmationCard(record, context);
      cards.set(record.id, card);
      list.append(card.node);
    }
    for (const [id, card] of cards) {
      if (!waiting.has(id)) card.close('This call waits no longer: it was decided elsewhere, or it expired.');
    }
    none.hidden = cards.size > 0;
    if (fresh.length > 0) say(`${fresh.length} ${fresh.length === 1 ? 'call waits' : 'calls wait'} for you`);
    document.title = `${waiting.size > 0 ? `(${waiting.size}) ` : ''}Approvals - Toolgate`;
  }

  const tick = () => {
    for (const card of cards.values()) card.tick();
  };
  return { heading: 'Calls that wait for a person', node: list, refresh, tick, again: true };
}

/** One confirmation, where a link points at it. */
export function oneView(context, id) {
  const place = element('div', { class: 'cards' });
  let card;
  return {
    heading: 'One call',
    node: place,
    async refresh() {
      const record = await context.api.get(`/v1/confirmations/${encodeURIComponent(id)}`);
      card = confirmationCard(record, context);
      place.replaceChildren(card.node);
    },
    tick: () => card?.tick(),
    again: false,
  };
}

/** What people decided, newest first. */
export function decidedView(context) {
  const place = element('div', { class: 'cards' });
  return {
    heading: 'Decided calls',
    node: place,
    async refresh() {
      const states = ['approved', 'denied', 'spent'];
      const answers = await Promise.all(states.map((state) => context.api.get(`/v1/confirmations?state=${state}`)));
      const records = answers.flatMap(({ confirmations }) => confirmations);
      records.sort((a, b) => (b.decided ?? b.created) - (a.decided ?? a.created));
      const cards = records.map((record) => confirmationCard(record, context).node);
      place.replaceChildren(
        ...(cards.length > 0 ? cards : [element('p', { class: 'none' }, 'Nothing was decided yet.')]),
      );
    },
    tick: () => undefined,
    again: false,
  };
}
