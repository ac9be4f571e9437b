import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { loadGateway } from '../../gateway/catalogue/load-gateway.ts';
import { renderProblems } from '../../gateway/config/problem.ts';
import { catalogueDeps } from '../../gateway/load/catalogue-deps.ts';
import { ENV, vector } from './places.ts';

/** A table like `NOT_YET`, with every kind of pattern; it stays as it is while that one shrinks. */
const UNBUILT: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ...['rulebook', 'facts', 'licence', 'workers', 'routes.*.openapi', 'routes.*.mcp', 'routes.*.pass'],
    ...['checks', 'at_most.*', 'spend', 'currency', 'filter', 'outcome'].map((word) => `routes.*.tools.*.${word}`),
  ].map((pattern) => [pattern, 'it is not enforced']),
);

/**
 * The marks of a file: at the end of a line, `# !` and for each problem of that line its column, `(warning)` where it is
 * one, and its code. All of them must be told, and nothing else.
 */
function marksOf(text: string): readonly string[] {
  return text.split('\n').flatMap((line, index) => {
    const [, marks] = line.split('# ! ');
    return (marks ?? '').split(', ').flatMap((mark) => (mark === '' ? [] : [`${index + 1}:${mark}`]));
  });
}

for (const name of readdirSync(vector('faulty')).sort()) {
  test(`every fault of ${name} is told at its place`, async () => {
    const path = vector(`faulty/${name}`);
    const marks = marksOf(readFileSync(path, 'utf8'));
    assert.notEqual(marks.length, 0);
    const options = { env: ENV, notYet: name === 'not-yet.yaml' ? UNBUILT : {} };
    const { loaded, problems } = await loadGateway(path, options, catalogueDeps());
    const told = problems.map(
      ({ line, column, severity, code }) => `${line}:${column} ${severity === 'error' ? '' : '(warning) '}${code}`,
    );
    assert.deepEqual([...told].sort(), [...marks].sort(), renderProblems(problems));
    assert.equal(
      loaded === undefined,
      problems.some(({ severity }) => severity === 'error'),
    );
    for (const problem of problems) assert.equal(problem.file, path);
  });
}

test('a file that is not there is one fault', async () => {
  const { problems } = await loadGateway(vector('no-such.yaml'), { env: {} }, catalogueDeps());
  assert.deepEqual(
    problems.map(({ code, line, column }) => [code, line, column]),
    [['missing_file', 1, 1]],
  );
});
