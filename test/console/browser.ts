import { existsSync } from 'node:fs';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';

const CHROMIUM = '/usr/bin/chromium';

/** Why no page can be opened on this machine; `false` where one can. */
export const NO_BROWSER: string | false = existsSync(CHROMIUM)
  ? false
  : `there is no ${CHROMIUM}: install it with \`apt-get install -y chromium\` to run these tests`;

/** A browser that calls nobody on its own account. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/** A tab, with everything that its scripts and its browser complained of. */
export interface Tab {
  readonly page: Page;
  readonly complaints: string[];
}

export async function openTab(browser: Browser): Promise<Tab> {
  const page = await browser.newPage({ viewport: { width: 1000, height: 900 } });
  // Machines that run tests are busy; a page that answers at all answers within this.
  page.setDefaultTimeout(20_000);
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() !== 'error' && message.type() !== 'warning') return;
    // The browser itself notes each refused request there, and the page says it to the person.
    if (!message.text().startsWith('Failed to load resource')) complaints.push(message.text());
  });
  return { page, complaints };
}

/** Gives the page a key, as a person does. */
export async function giveKey(page: Page, key: string): Promise<void> {
  await page.getByLabel("Your approver's key").fill(key);
  await page.keyboard.press('Enter');
}

/** The card of a confirmation, an unknown outcome or a run. */
export function cardOf(page: Page, id: string): Locator {
  return page.locator(`article[data-id="${id}"]`);
}

/** What stands on the screen, as it is laid out. */
export async function seenText(locator: Locator): Promise<string> {
  await locator.first().waitFor();
  return (await locator.allInnerTexts()).join('\n');
}

/** The same with every run of spaces as one. */
export async function readText(locator: Locator): Promise<string> {
  return (await seenText(locator)).replaceAll(/\s+/g, ' ');
}
