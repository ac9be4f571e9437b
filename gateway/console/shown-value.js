import { element, newId } from './element.js';
import { shownText, warningsOf } from './shown-text.js';

/** Characters of a value that are shown at once, and of its end. A longer one opens whole. */
const MOST_AT_ONCE = 600;
const HEAD = 400;
const TAIL = 100;

/**
 * A value of strangers, always as text. `isSeen` tells whether all of it was on the screen; `open` puts it there.
 * @returns {{node: HTMLElement, isSeen: () => boolean, open: () => void}}
 */
export function shownValue(value) {
  const text = textOf(value);
  const kind = kindOf(value);
  const chars = [...text];
  const show = (part) => shownText(part, typeof value !== 'string');
  const id = newId();
  const box = element('div', { class: 'value', id, dir: 'ltr' });
  const warnings = warningsOf(text).map((warning) => element('p', { class: 'warning' }, warning));
  const size = kind === 'text' && text === '' ? 'text, empty' : kind;
  const node = element('div', { class: 'shown' }, box, ...warnings);
  if (chars.length <= MOST_AT_ONCE) {
    box.append(show(text));
    node.append(element('p', { class: 'kind' }, size));
    return { node, isSeen: () => true, open: () => undefined };
  }
  let open = false;
  let seen = false;
  const length = chars.length.toLocaleString('en');
  const button = element('button', { type: 'button', class: 'quiet', 'aria-controls': id, click: () => set(!open) });
  const set = (to) => {
    open = to;
    seen ||= to;
    button.setAttribute('aria-expanded', String(open));
    button.textContent = open ? 'Show less' : `Show all ${length} characters`;
    if (open) return box.replaceChildren(show(text));
    const left = (chars.length - HEAD - TAIL).toLocaleString('en');
    const gap = element('span', { class: 'gap' }, `${left} characters are not shown here`);
    box.replaceChildren(show(chars.slice(0, HEAD).join('')), gap, show(chars.slice(-TAIL).join('')));
  };
  set(false);
  node.append(element('p', { class: 'kind' }, `${size} of ${length} characters`), button);
  return { node, isSeen: () => seen, open: () => set(true) };
}

/** A text as it is; anything else as JSON, with every digit that the gateway sent. */
function textOf(value) {
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 2);
}

function kindOf(value) {
  if (value === null) return 'null';
  if (typeof value === 'string') return 'text';
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'number' || JSON.isRawJSON?.(value) === true) return 'number';
  return typeof value === 'boolean' ? 'yes or no' : 'object';
}

/** Where a value came from, in words; the origin word itself stands behind it. */
export function originInWords(origin) {
  if (Object.hasOwn(ORIGINS, origin)) return ORIGINS[origin];
  const [, step, field] = /^result:(\d{1,9})(?:\.(.{1,200}))?$/s.exec(origin) ?? [];
  if (step === undefined) return 'from a place that the gateway does not know';
  if (field === undefined) return `from the result of step ${step}, the agent says; which part of it is not said`;
  return `from the result of step ${step}`;
}

const ORIGINS = {
  model: 'from the model; nobody else vouches for it',
  typed: 'typed by the person, and found in their words',
  reply: "from the person's reply to a question, the app says",
  context: 'from the app or from the settings of the gateway',
  computed: 'computed by the app or bound from an earlier step',
};
