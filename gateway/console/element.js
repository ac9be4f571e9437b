/**
 * Makes an element. Texts among the children become text nodes: nothing here, or anywhere in the page, makes markup out
 * of a text.
 * @param {string} tag
 * @param {Record<string, string | boolean | ((event: Event) => void)>} [attributes] A function listens to the event of its name
 *   (`click`); `true` sets an attribute without a value, `false` leaves it out.
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, '');
    else if (value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

let made = 0;

/** An id that no other element of the page has, to tie a label or a description to its element. */
export function newId() {
  made += 1;
  return `n${made}`;
}

/** Lines of a description list: a term and what stands for it. */
export function termsOf(rows) {
  return element(
    'dl',
    { class: 'facts' },
    ...rows.map(([term, ...what]) => element('div', {}, element('dt', {}, term), element('dd', {}, ...what))),
  );
}
