import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { answerOnly, doAndCut, type RecordingBackend, startBackend } from '../execution/backend.ts';
import { call, post, unknowns, untilRun, worldConfig } from '../execution/world.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { cardOf, giveKey, NO_BROWSER, openTab, readText, startBrowser, type Tab } from './browser.ts';

let backend: RecordingBackend;
let gateway: TestGateway;
let browser: Browser;
let tab: Tab;

before(async () => {
  if (NO_BROWSER !== false) return;
  backend = await startBackend();
  [gateway, browser] = await Promise.all([startTestGateway(worldConfig(backend.url)), startBrowser()]);
  tab = await openTab(browser);
});
after(async () => {
  if (NO_BROWSER !== false) return;
  await browser.close();
  await gateway.close();
  await backend.close();
});

describe('the approvers page, for what nobody knows', { skip: NO_BROWSER }, () => {
  test('an unknown outcome is settled with a reason, and not without', async () => {
    const { url } = gateway;
    const { page } = tab;
    backend.next('note', doAndCut(backend));
    assert.equal((await call(url, 'note', { order: 'a' }, { session: 's-note' })).json.outcome, 'outcome_unknown');
    const [unknown] = await unknowns(url);
    assert.ok(unknown);
    await page.goto(`${url}/console/outcomes`);
    await giveKey(page, 'ana-key');
    const card = cardOf(page, unknown.id);
    assert.match(await readText(card), /shop\/note .* Agent desk Credential shop-app Session s-note, step 0/);
    await card.getByRole('button', { name: 'Record that shop/note ran' }).click();
    await card.getByText('a reason is needed').waitFor();
    assert.equal((await unknowns(url)).length, 1);
    await card.getByLabel('How you know').fill('seen in the books');
    await card.getByRole('button', { name: 'Record that shop/note ran' }).click();
    await card.getByText('You recorded that this call ran.').waitFor();
    assert.deepEqual(await unknowns(url), []);
    await page.getByRole('link', { name: 'Unknown outcomes' }).click();
    await page.getByText('Every outcome is known.').waitFor();
    assert.deepEqual(tab.complaints, []);
  });

  test('a run whose undoing stopped is listed, and goes on by what a person says', async () => {
    const { url } = gateway;
    const { page } = tab;
    const members = { session: 's-stop', run: 'r-stop' };
    await call(url, 'book', { order: 'g' }, members);
    await call(url, 'reserve', { order: 'g' }, members);
    backend.next('release', answerOnly(422));
    await post(url, '/v1/runs/r-stop/undo', {});
    await untilRun(url, 'r-stop', 'needs_person');
    await page.goto(`${url}/console/runs`);
    await giveKey(page, 'ana-key');
    const card = cardOf(page, 'r-stop');
    await card.getByText('It waits for your word.').waitFor();
    assert.match(await readText(card), /Step 1: shop\/reserve Step 1 could not be undone\. Its undo is shop\/release/);
    await card.getByLabel('How you know').fill('the backend was mended');
    await card.getByRole('button', { name: 'Try the undo of step 1 again' }).click();
    await card.getByText('It goes on by itself').waitFor();
    await untilRun(url, 'r-stop', 'compensated');
    assert.equal(backend.of('release').length, 1);
    assert.deepEqual(tab.complaints, []);
  });
});
