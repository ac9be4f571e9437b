import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { renderConfigReference } from '../gateway/config/reference.ts';
import { fillRegions, type Generators, regionsOf } from './regions.ts';
import { renderFaults, renderReasons, renderSteps } from './tables.ts';

/**
 * Writes the generated parts of the README and of the pages of docs/ anew (`npm run docs`), or says which pages differ from
 * what the code says and fails (`npm run docs -- --check`).
 */

const ROOT = new URL('../', import.meta.url);
const CONFIG_SCHEMA = new URL('gateway/config/gateway.schema.json', ROOT);

export const GENERATORS: Generators = new Map([
  ['steps', renderSteps],
  ['reasons', renderReasons],
  ['faults', renderFaults],
  ['configuration', () => renderConfigReference(JSON.parse(readFileSync(CONFIG_SCHEMA, 'utf8')))],
]);

/** Where each part must stand at least; any page may have any of them. */
const EXPECTED: readonly (readonly [page: string, part: string])[] = [
  ['README.md', 'steps'],
  ['docs/check.md', 'steps'],
  ['docs/check.md', 'reasons'],
  ['docs/api.md', 'faults'],
  ['docs/configuration.md', 'configuration'],
];

/** A page as it is, and as the code says that it must be. */
export interface Page {
  readonly name: string;
  readonly found: string;
  readonly wanted: string;
}

/** Every page of the documentation. Throws where a page has marks that do not fit, or lacks a part that belongs there. */
export function readPages(): readonly Page[] {
  const names = ['README.md', ...readdirSync(new URL('docs/', ROOT)).map((name) => `docs/${name}`)];
  const pages = names
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => readPage(name));
  for (const [name, part] of EXPECTED) {
    const page = pages.find((each) => each.name === name);
    if (page === undefined || !regionsOf(page.found).includes(part)) {
      throw new Error(
        `\`${name}\` lacks the generated part \`${part}\`: add \`<!-- generated:${part} -->\` and its end`,
      );
    }
  }
  return pages;
}

function readPage(name: string): Page {
  const found = readFileSync(new URL(name, ROOT), 'utf8');
  try {
    return { name, found, wanted: fillRegions(found, GENERATORS) };
  } catch (error) {
    throw new Error(`\`${name}\` cannot be generated`, { cause: error });
  }
}

function main(check: boolean): void {
  const differing = readPages().filter(({ found, wanted }) => found !== wanted);
  for (const { name, wanted } of differing) {
    if (check) process.stderr.write(`\`${name}\` differs from what the code says: run \`npm run docs\`\n`);
    else writeFileSync(new URL(name, ROOT), wanted);
  }
  if (check && differing.length > 0) process.exitCode = 1;
}

if (import.meta.main) main(process.argv.includes('--check'));
