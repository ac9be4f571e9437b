import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { type Answer, type Called, KEYS, shopWorld, startWorld, type World } from '../e2e/world.ts';
import { cardOf, giveKey, NO_BROWSER, openTab, readText, seenText, startBrowser, type Tab } from './browser.ts';

type Json = Record<string, unknown>;

if (NO_BROWSER !== false) process.stdout.write(`# skipped: ${NO_BROWSER}\n`);

let world: World;
let browser: Browser;
let tab: Tab;

before(async () => {
  if (NO_BROWSER !== false) return;
  [world, browser] = await Promise.all([startWorld(), startBrowser()]);
  tab = await openTab(browser);
});
after(async () => {
  if (NO_BROWSER !== false) return;
  await browser.close();
  await world.close();
});
afterEach(() => {
  if (NO_BROWSER === false) assert.deepEqual(tab.complaints.splice(0), []);
});

const AGENT = KEYS.billing;
let sessions = 0;

/** A write of the agent that waits for an approver. */
async function held(tool: string, args: Json, members: Json = {}): Promise<{ body: Json; answer: Answer; id: string }> {
  const session = `console-${++sessions}`;
  if (tool === 'charge_card') await world.call({ tool: 'get_order', arguments: { order_id: '4411' }, session }, AGENT);
  const body = { tool: `shop/${tool}`, arguments: args, session, ...members };
  const { check } = await world.call(body, AGENT);
  assert.equal(check.decision, 'confirm', JSON.stringify(check));
  return { body, answer: check, id: check.confirmation?.id ?? '' };
}

const again = (body: Json): Promise<Called> => world.call(body, AGENT);

/** Loads the page anew, which forgets the last key, and gives it one. */
async function open(path: string, key: string = KEYS.ana, { page }: Tab = tab): Promise<Page> {
  await page.goto(`${world.gateway.url}${path}`);
  await giveKey(page, key);
  return page;
}

describe('the approvers page', { skip: NO_BROWSER }, () => {
  test('shows a held write with its arguments, where they came from and why, and an approval lets the repeat run', async () => {
    const read = await world.call({ tool: 'get_order', arguments: { order_id: '4411' }, session: 'shown' }, AGENT);
    const { body, id } = await held(
      'charge_card',
      { order_id: '4411', amount: 40 },
      { session: 'shown', origins: { order_id: `result:${read.check.step}.order_id` }, run: 'r-shown' },
    );
    const page = await open('/console');
    const card = cardOf(page, id);
    const text = await readText(card);
    for (const part of ['shop/charge_card', 'billing', 'billing-bot', 'shown, step', 'r-shown', 'Expires in']) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
    assert.match(text, /order_id 4411 text from the result of step 0 \(result:0\.order_id\)/);
    assert.match(text, /amount 40 number from the model; nobody else vouches for it \(model\)/);
    assert.match(text, /a person must approve values that no trusted source gave: amount/);
    await card.getByLabel('Note, for the record').fill('looked at the order');
    const sent = world.seen.length;
    await card.getByRole('button', { name: 'Approve this call of shop/charge_card' }).click();
    await card.getByText('You approved this call.').waitFor();
    assert.match(await seenText(page.getByRole('status').last()), /shop\/charge_card: You approved this call/);
    assert.equal(world.seen.length, sent, 'an approval sends nothing');
    const { check, outcome } = await again(body);
    assert.deepEqual([check.reason, outcome], ['confirmed', 'ran']);
    await page.getByRole('link', { name: 'Decided' }).click();
    const decided = await readText(cardOf(page, id));
    assert.match(decided, /approved, and used for its call.* By ana.* Note: looked at the order/);
    assert.equal(await cardOf(page, id).getByRole('button').count(), 0);
  });

  test('a denial keeps the call from running, and a call of another tab is not decided twice', async () => {
    const { body, id } = await held('charge_card', { order_id: '4411', amount: 41 });
    const page = await open('/console');
    const second = await openTab(browser);
    const other = await open('/console', KEYS.ana, second);
    await cardOf(other, id).waitFor();
    await cardOf(page, id).getByRole('button', { name: 'Deny this call of shop/charge_card' }).click();
    await cardOf(page, id).getByText('You denied this call.').waitFor();
    await cardOf(other, id).getByRole('button', { name: 'Approve' }).click();
    await other.getByRole('alert').getByText('decided before').waitFor();
    await cardOf(other, id).getByText('This call is denied.').waitFor();
    assert.match(await readText(cardOf(other, id)), /This call is denied\. By ana/);
    assert.deepEqual(second.complaints, []);
    await other.close();
    const sent = world.seen.length;
    assert.notEqual((await again(body)).check.decision, 'allow');
    assert.equal(world.seen.length, sent);
  });

  test('a call that comes while the page is open is appended', async () => {
    const first = await held('charge_card', { order_id: '4411', amount: 1 });
    const page = await open('/console');
    await cardOf(page, first.id).waitFor();
    const second = await held('charge_card', { order_id: '4411', amount: 2 });
    // It asks every few seconds, and at once when a person comes back to it.
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await cardOf(page, second.id).waitFor();
    const ids = await page.locator('article').evaluateAll((cards) => cards.map((card) => card.getAttribute('data-id')));
    assert.ok(ids.indexOf(first.id) < ids.indexOf(second.id));
  });

  test('hostile values are text, whole, with what would not be seen written out', async () => {
    const markup = '<img src=x onerror="document.title=1"><script>document.title=2</script></div></body>';
    const text = `${markup}pay \u202e0001\u202c \u200bnow\u0000\n\u043eld${'z\u0301'.repeat(2)}`;
    const { id } = await held('note', { text, number: 7, list: [1.5, 2] });
    const page = await open(`/console/confirmations/${id}`);
    const card = cardOf(page, id);
    const value = card.locator('.value').first();
    const shown = await seenText(value);
    assert.ok(shown.startsWith(markup), shown);
    for (const name of ['U+202E right-to-left override', 'U+200B zero-width space', 'U+0000 null']) {
      assert.ok(shown.includes(name), `${name} in ${shown}`);
    }
    assert.ok(!shown.includes('\u202e') && !shown.includes('\u200b'));
    assert.equal(await value.locator('img, script').count(), 0);
    assert.match(await readText(card), /4 hidden characters are written out.*Letters of several alphabets are mixed/);
    assert.match(await page.title(), /^Approvals/);
  });

  test('a number is shown with the digits that were sent', async () => {
    const body = `{"tool":"shop/note","session":"digits","arguments":{"number":9007199254740993,"list":[12345678901234567890]}}`;
    const answer = await world.gateway.request('POST', '/v1/call', {
      body,
      key: AGENT,
    });
    const { check } = answer.json as Called;
    const page = await open(`/console/confirmations/${check.confirmation?.id}`);
    const values = page.locator('.value');
    await values.first().waitFor();
    assert.deepEqual(
      (await values.allInnerTexts()).map((text) => text.replaceAll(/\s/g, '')),
      ['9007199254740993', '[12345678901234567890]'],
    );
  });

  test('a value of 5,000 characters is approved only once all of it was on the screen', async () => {
    const text = `${'a fine text. '.repeat(383)}${'!'.repeat(11)}the end...`;
    assert.equal(text.length, 5000);
    const { body, id } = await held('note', { text });
    const page = await open(`/console/confirmations/${id}`);
    const card = cardOf(page, id);
    const value = card.locator('.value').first();
    assert.match(await seenText(value), /4,500 characters are not shown here/);
    const button = card.getByRole('button', { name: 'Show all 5,000 characters' });
    assert.equal(await button.getAttribute('aria-expanded'), 'false');
    await card.getByRole('button', { name: 'Approve' }).click();
    await card.getByText('Not all of "text" was shown').waitFor();
    assert.equal((await seenText(value)).length, 5000);
    assert.notEqual((await again(body)).check.decision, 'allow');
    await card.getByRole('button', { name: 'Approve' }).click();
    await card.getByText('You approved this call.').waitFor();
    assert.equal((await again(body)).check.reason, 'confirmed');
  });

  test('a key that is wrong, an agent, or no key shows nothing and says what to do', async () => {
    const { id } = await held('charge_card', { order_id: '4411', amount: 3 });
    const page = tab.page;
    await page.goto(`${world.gateway.url}/console/confirmations/${id}`);
    const alert = page.getByRole('alert');
    for (const [key, said] of [
      ['tg_not-a-key', /does not know this key\. Check that you pasted all of it/],
      [AGENT, /only an approver's key decides/],
      [KEYS.app, /only an approver's key decides/],
      ['two words', /That is no key/],
    ] as const) {
      await giveKey(page, key);
      await alert.filter({ hasText: said }).waitFor();
      assert.equal(await page.locator('article').count(), 0);
      assert.ok(await page.getByLabel("Your approver's key").isVisible());
      assert.ok(!(await page.content()).includes('charge_card'));
    }
  });

  test('the key is in no storage, and a page that is loaded again asks for it', async () => {
    const page = await open('/console');
    await page.getByRole('heading', { name: 'Calls that wait' }).waitFor();
    const kept = await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])');
    assert.equal(kept, '[{},{},""]');
    await page.reload();
    assert.ok(await page.getByLabel("Your approver's key").isVisible());
  });

  test('on a narrow screen nothing runs over the edge, and the keyboard alone is enough', async () => {
    const { body, id } = await held('note', { text: 'w'.repeat(300) }, { run: 'r'.repeat(80) });
    const { page } = tab;
    await page.setViewportSize({ width: 360, height: 740 });
    await page.goto(`${world.gateway.url}/console/confirmations/${id}`);
    // The field for the key has the focus already.
    await page.keyboard.insertText(KEYS.ana);
    await page.keyboard.press('Enter');
    const card = cardOf(page, id);
    await card.waitFor();
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
    const focused = (): Promise<string> =>
      page.evaluate('document.activeElement.textContent || document.activeElement.id');
    assert.equal(await focused(), 'One call');
    await page.keyboard.press('Tab');
    await page.keyboard.insertText('by keyboard');
    await page.keyboard.press('Tab');
    assert.equal(await focused(), 'Approve this call of shop/note');
    await page.keyboard.press('Enter');
    await card.getByText('You approved this call.').waitFor();
    assert.match(await focused(), /^You approved this call/);
    assert.equal((await again(body)).check.reason, 'confirmed');
    await page.setViewportSize({ width: 1000, height: 900 });
  });

  test('a call whose time is over can no longer be decided', async () => {
    await world.gateway.reconfigure(shopWorld(world.shop.url, { confirmations: { ttl: '3s' } }));
    const { id } = await held('note', { text: 'soon over' });
    const page = await open(`/console/confirmations/${id}`);
    await cardOf(page, id).getByText('nobody decided it').waitFor();
    assert.equal(await cardOf(page, id).getByRole('button').count(), 0);
    await page.getByRole('link', { name: 'Waiting' }).click();
    await page.getByRole('heading', { name: 'Calls that wait' }).waitFor();
    assert.equal(await cardOf(page, id).count(), 0);
  });
});
