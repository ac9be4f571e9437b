import { element, newId } from './element.js';
import { ConsoleFault, GatewayApi, KEEPS_DIGITS } from './gateway-api.js';
import { viewOf } from './views.js';

/** How often what waits is asked for, and how often a countdown moves. */
const ASK_MS = 5000;
const TICK_MS = 1000;
/** How long a message stays. */
const SAID_MS = 8000;

const main = document.getElementById('main');
const views = document.getElementById('views');
const leave = document.getElementById('leave');
const wrong = document.getElementById('wrong');
const said = document.getElementById('said');

/** The approver's connection, in memory alone: it is gone with the page. */
let api;
let view;

let saidUntil;

/** Says what happened, for a moment, at the edge of the screen and to a screen reader. */
const say = (text) => {
  said.textContent = text;
  clearTimeout(saidUntil);
  saidUntil = setTimeout(() => said.replaceChildren(), SAID_MS);
};

/** Says what is wrong. A key that is not taken, or no longer, is asked for anew. */
function fail(fault) {
  wrong.textContent = fault instanceof ConsoleFault ? fault.message : `This page failed: ${fault}. Load it again.`;
  if (fault instanceof ConsoleFault && (fault.status === 401 || fault.status === 403) && api !== undefined) signOut();
}

function signOut() {
  api = undefined;
  view = undefined;
  views.hidden = true;
  leave.hidden = true;
  document.title = 'Approvals - Toolgate';
  say('');
  showSignIn();
}

function showSignIn() {
  const field = element('input', {
    id: newId(),
    type: 'password',
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    required: true,
  });
  const button = element('button', { type: 'submit', class: 'yes' }, 'Show what waits');
  const form = element(
    'form',
    {
      class: 'card',
      submit: (event) => {
        event.preventDefault();
        void signIn(field, button);
      },
    },
    element('label', { for: field.id }, "Your approver's key"),
    field,
    element(
      'p',
      { class: 'hint' },
      'It stays in the memory of this page, and is forgotten when you close or reload it.',
    ),
    button,
  );
  main.replaceChildren(element('h1', {}, 'Approve calls of agents'), form);
  field.focus();
}

async function signIn(field, button) {
  button.disabled = true;
  wrong.textContent = '';
  try {
    const asked = new GatewayApi(field.value);
    await asked.get('/v1/confirmations?state=pending');
    api = asked;
    views.hidden = false;
    leave.hidden = false;
    await show();
  } catch (fault) {
    field.value = '';
    field.focus();
    fail(fault);
  } finally {
    button.disabled = false;
  }
}

/** Makes the view of the page's address and fills it. */
async function show() {
  const { link, make } = viewOf(location.pathname);
  for (const entry of views.querySelectorAll('a')) {
    if (entry.getAttribute('href') === link) entry.setAttribute('aria-current', 'page');
    else entry.removeAttribute('aria-current');
  }
  wrong.textContent = '';
  say('');
  document.title = 'Approvals - Toolgate';
  view = make({ api, say, fail });
  const heading = element('h1', { tabindex: '-1' }, view.heading);
  const rounding = element(
    'p',
    { class: 'warning' },
    'This browser may round long numbers. Use a newer one, or look at them with `toolgate approvals list`.',
  );
  main.replaceChildren(heading, ...(KEEPS_DIGITS ? [] : [rounding]), view.node);
  heading.focus();
  await refresh(view);
}

let asking = false;

async function refresh(of) {
  asking = true;
  try {
    await of.refresh();
    if (of === view && stale) wrong.textContent = '';
    stale = false;
  } catch (fault) {
    if (of !== view) return;
    stale = true;
    fail(fault);
  } finally {
    asking = false;
  }
}

/** What is wrong is that the list could not be had, so the next that can be had clears it. */
let stale = false;

views.addEventListener('click', (event) => {
  const link = event.target.closest('a');
  // A new tab or window is a new page, and asks for the key itself.
  if (link === null || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  history.pushState(undefined, '', link.getAttribute('href'));
  void show();
});
leave.addEventListener('click', () => {
  wrong.textContent = '';
  signOut();
});
addEventListener('popstate', () => {
  if (api !== undefined) void show();
});
setInterval(() => view?.tick(), TICK_MS);
setInterval(() => {
  if (view?.again === true && !asking && document.visibilityState === 'visible') void refresh(view);
}, ASK_MS);
document.addEventListener('visibilitychange', () => {
  if (view?.again === true && !asking && document.visibilityState === 'visible') void refresh(view);
});
showSignIn();
