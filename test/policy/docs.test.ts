import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { GENERATORS, readPages } from '../../docs/generate.ts';
import { fillRegions, RegionFault, regionsOf } from '../../docs/regions.ts';
import { STEPS } from '../../policy/check.ts';
import { REASONS } from '../../policy/reasons.ts';

test('the generated parts of the pages are what the code says', () => {
  for (const { name, found, wanted } of readPages()) assert.equal(found, wanted, `${name}: run \`npm run docs\``);
});

test('the command that compares finds the same', () => {
  const script = fileURLToPath(new URL('../../docs/generate.ts', import.meta.url));
  assert.equal(execFileSync(process.execPath, [script, '--check'], { encoding: 'utf8', stdio: 'pipe' }), '');
});

test('every generated part stands on some page', () => {
  const used = new Set(readPages().flatMap(({ found }) => regionsOf(found)));
  assert.deepEqual(
    [...GENERATORS.keys()].filter((name) => !used.has(name)),
    [],
  );
});

test('the reference has every row and every reason', () => {
  const page = readPages().find(({ name }) => name === 'docs/check.md')?.wanted ?? '';
  for (const [index, { name }] of STEPS.entries()) assert.ok(page.includes(`\n| ${index + 1} | ${name} |`), name);
  for (const code of Object.keys(REASONS)) assert.ok(page.includes(`\n| \`${code}\` |`), code);
});

const MAKE = new Map([['list', () => 'new\n']]);

test('a part is made anew between its marks, and nothing else is touched', () => {
  const page = 'before\n<!-- generated:list -->\nold\nolder\n<!-- /generated -->\nafter `<!-- generated:list -->`\n';
  const filled = fillRegions(page, MAKE);
  assert.equal(
    filled,
    'before\n<!-- generated:list -->\n\nnew\n\n<!-- /generated -->\nafter `<!-- generated:list -->`\n',
  );
  assert.equal(fillRegions(filled, MAKE), filled);
});

for (const [what, page, message] of [
  [
    'a part that nothing makes',
    'a\n<!-- generated:other -->\n<!-- /generated -->',
    /^line 2: nothing makes .* `other`/,
  ],
  ['a part that does not end', '<!-- generated:list -->\n', /^line 1: `list` does not end$/],
  ['an end without a start', '\n<!-- /generated -->', /^line 2: no generated part/],
  [
    'a part in a part',
    '<!-- generated:list -->\n<!-- generated:list -->\n<!-- /generated -->',
    /^line 1: .*before the next/,
  ],
] as const) {
  test(`${what} is an error that names the line`, () => {
    assert.throws(
      () => fillRegions(page, MAKE),
      (error) => error instanceof RegionFault && message.test(error.message),
    );
  });
}
