import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const HOUSE = mkdtempSync(join(tmpdir(), 'toolgate-rooms-'));
after(() => rmSync(HOUSE, { recursive: true }));

/** The project's own lint settings in a house of one file. */
function lint(file: string, text: string): { readonly ok: boolean; readonly said: string } {
  const settings: Record<string, unknown> = JSON.parse(readFileSync(join(ROOT, 'biome.json'), 'utf8'));
  writeFileSync(join(HOUSE, 'biome.json'), JSON.stringify({ ...settings, vcs: { enabled: false } }));
  writeFileSync(join(HOUSE, 'package.json'), readFileSync(join(ROOT, 'package.json')));
  const path = join(HOUSE, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  try {
    const biome = join(ROOT, 'node_modules/.bin/biome');
    execFileSync(biome, ['lint', '--error-on-warnings', file], { cwd: HOUSE, stdio: 'pipe', encoding: 'utf8' });
    return { ok: true, said: '' };
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr) : String(error);
    return { ok: false, said };
  } finally {
    rmSync(path);
  }
}

const importing = (what: string): string =>
  `import { thing } from '${what}';\n\nexport const other: unknown = thing;\n`;

test('the lint lets an import down the house through', () => {
  assert.deepEqual(lint('policy/steps/planted.ts', importing('../../receipts/history.ts')), { ok: true, said: '' });
  assert.deepEqual(lint('gateway/planted.ts', importing('../policy/check.ts')), { ok: true, said: '' });
});

for (const [file, what] of [
  ['receipts/planted.ts', '../policy/check.ts'],
  ['receipts/planted.ts', '../gateway/enforce.ts'],
  ['policy/planted.ts', '../gateway/enforce.ts'],
  ['policy/steps/planted.ts', '../../gateway/config/load.ts'],
  ['policy/planted.ts', 'node:fs'],
  ['policy/planted.ts', 'node:process'],
  ['gateway/planted.ts', '../test/smoke.test.ts'],
] as const) {
  test(`the lint refuses \`${what}\` in \`${file}\``, () => {
    const { ok, said } = lint(file, importing(what));
    assert.equal(ok, false);
    assert.match(said, /noRestrictedImports/);
  });
}

test('the check is made of what it is given: no clock, no chance, no environment, no I/O', () => {
  const folder = join(ROOT, 'policy');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  assert.ok(files.length > 50);
  for (const file of files) {
    const text = readFileSync(join(folder, file), 'utf8');
    assert.doesNotMatch(text, /\b(?:Date\.now|Temporal\.Now|Math\.random|performance\.now)\b|\bnew Date\(\)/, file);
    assert.doesNotMatch(
      text,
      /\b(?:process|globalThis|crypto)\.|\b(?:fetch|setTimeout|setInterval|setImmediate)\(/,
      file,
    );
    assert.doesNotMatch(text, /from 'node:|\bimport\(|crypto-node/, file);
  }
});
