import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { makeCheckCells } from '../../gateway/rulebook/check-cell.ts';
import { runRulesCompile, runRulesExplain } from '../../gateway/rulebook/commands.ts';
import { compileRulebookFiles, loadRulebookFiles } from '../../gateway/rulebook/load.ts';
import { decideRulebook, loadRecord } from '../../policy/rulebook/decide.ts';
import { workbook } from './workbook.ts';

const folders: string[] = [];

after(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

async function folderWith(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'toolgate-rulebook-'));
  folders.push(folder);
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), content);
  }
  return folder;
}

const ROWS = [
  ['tool', 'when', 'decision', 'rule', 'because'],
  ['refund', '$paid and $call.amount <= 100', 'allow', 'small refunds', ''],
  ['refund', '$paid', 'confirm', 'large refunds', 'Refund this much?'],
  ['refund', '$embargo', 'refuse', 'embargo', 'The country is closed.'],
  ['ship', '', 'allow', 'shipping', ''],
];

const CSV =
  'tool,when,decision,rule,because\nrefund,$paid and $call.amount <= 100,allow,small refunds,\nrefund,$paid,confirm,large refunds,"Refund this much?"\nrefund,$embargo,refuse,embargo,The country is closed.\nship,,allow,shipping,\n';

const YAML = `rules:
  - {tool: refund, when: $paid and $call.amount <= 100, decision: allow, rule: small refunds}
  - tool: refund
    when: $paid
    decision: confirm
    rule: large refunds
    because: Refund this much?
  - {tool: refund, when: $embargo, decision: refuse, rule: embargo, because: The country is closed.}
  - tool: ship
    decision: allow
    rule: shipping
`;

describe('a rule sheet decides the same from every kind of file', () => {
  const kinds: readonly [string, string | Uint8Array, number][] = [
    ['rules.csv', CSV, 3],
    ['rules.xlsx', workbook(ROWS), 3],
    ['rules.yaml', YAML, 3],
    ['semicolons.csv', CSV.replaceAll(',', ';'), 3],
    ['tabs.csv', CSV.replaceAll(',', '\t'), 3],
    ['mark.csv', `\uFEFF${CSV}`, 3],
    ['rows.csv', CSV.replaceAll('\n', '\r\n'), 3],
    ['blanks.csv', CSV.replaceAll('$paid and', '$paid\u00a0and'), 3],
  ];
  for (const [name, content, confirmLine] of kinds) {
    test(name, async () => {
      const base = await folderWith({ [name]: content });
      const { record, governed, problems } = await compileRulebookFiles([name], base);
      assert.deepEqual(problems, []);
      assert.ok(record);
      assert.deepEqual(governed, ['refund', 'ship']);
      const prepared = loadRecord(record);
      const decide = (facts: Readonly<Record<string, boolean>>, amount?: number): unknown =>
        decideRulebook(prepared, 'shop/refund', { facts, arguments: amount === undefined ? {} : { amount } });
      const flow = name.slice(0, name.lastIndexOf('.'));
      assert.deepEqual(decide({ paid: true }, 50), { kind: 'allow', flow, line: 2 });
      assert.deepEqual(decide({ paid: true }, 500), {
        kind: 'confirm',
        question: 'Refund this much?',
        because: 'Refund this much?',
        flow,
        line: confirmLine,
      });
      const embargo = decide({ embargo: true });
      assert.partialDeepStrictEqual(embargo, {
        kind: 'refuse',
        reason: 'embargo',
        because: 'The country is closed.',
        flow,
      });
      assert.partialDeepStrictEqual(decide({}), { kind: 'refuse', code: 'no_rule', reason: 'no_rule', flow });
      // Without the amount the first row may or may not hold: allow with confirm is confirm.
      assert.partialDeepStrictEqual(decide({ paid: true }), { kind: 'confirm', question: 'Refund this much?' });
      assert.equal(decideRulebook(prepared, 'ship', { facts: {}, arguments: {} }).kind, 'allow');
      assert.equal(decideRulebook(prepared, 'other', { facts: {}, arguments: {} }).kind, 'ungoverned');
    });
  }
});

describe('what is wrong with a rule sheet is told with its place', () => {
  const faults: readonly [string, string, string, string, number, number][] = [
    ['a heading that is none', 'a.csv', 'tool,decisoin\nt,allow\n', 'header_cell', 1, 6],
    ['a heading twice', 'a.csv', 'tool,decision,tool\nt,allow,u\n', 'header_cell', 1, 15],
    ['a decision that is none', 'a.csv', 'tool,decision\nt,alow\n', 'decision_cell', 2, 3],
    ['no decision', 'a.csv', 'tool,when,decision\nt,$a,\n', 'decision_cell', 2, 1],
    ['no tool', 'a.csv', 'tool,decision\n,allow\n', 'tool_cell', 2, 1],
    ['a tool that cannot be', 'a.csv', 'tool,decision\n"a b",allow\n', 'tool_cell', 2, 1],
    ['a condition at fault', 'a.csv', 'tool,decision,when\nt,allow,$a = 1\n', 'condition_syntax', 2, 12],
    ['a check that is none', 'a.csv', 'tool,decision,check\nt,allow,nothing: [\n', 'check_cell', 2, 9],
    [
      'a row after a cell of two lines',
      'a.csv',
      'tool,because,decision\nt,"one\ntwo",allow\nu,,maybe\n',
      'decision_cell',
      4,
      4,
    ],
    ['a quote inside a cell', 'a.csv', 'tool,decision\nt,al"low\n', 'sheet_format', 2, 1],
    ['a heading that is none, in YAML', 'a.yaml', '- tool: t\n  decison: allow\n', 'header_cell', 2, 3],
    ['a decision that is none, in YAML', 'a.yaml', '- tool: t\n  decision: alow\n', 'decision_cell', 2, 13],
    [
      'a condition at fault, in YAML',
      'a.yaml',
      '- {tool: t, decision: allow, when: paid}\n',
      'condition_syntax',
      1,
      36,
    ],
    ['no list, in YAML', 'a.yaml', 'tool: t\n', 'sheet_format', 1, 1],
    ['no map as a row, in YAML', 'a.yaml', '- tool\n', 'sheet_format', 1, 3],
    ['a list as a tool, in YAML', 'a.yaml', '- tool: [t]\n  decision: allow\n', 'sheet_format', 1, 3],
    [
      'a heading in two spellings, in YAML',
      'a.yaml',
      '- {tool: t, when: $a, When: "true", decision: allow}\n',
      'header_cell',
      1,
      23,
    ],
    [
      'a word beside the rules, in YAML',
      'a.yaml',
      'rules: [{tool: t, decision: allow}]\nrule: []\n',
      'sheet_format',
      2,
      1,
    ],
    [
      'a name with a character without width',
      'a.csv',
      'tool,decision,when\nt,allow,not $a\u200b\n',
      'condition_syntax',
      2,
      15,
    ],
    [
      'an escape that readers differ in',
      'a.csv',
      'tool,decision,when\nt,allow,"$call.p != ""\\d"""\n',
      'condition_syntax',
      2,
      21,
    ],
    ['YAML at fault', 'a.yaml', '- tool: "t\n', 'sheet_format', 2, 1],
    ['YAML nested too deep', 'a.yaml', '['.repeat(200_000), 'sheet_format', 1, 65],
    ['YAML nested too deep by lists', 'a.yaml', '- '.repeat(200_000), 'sheet_format', 1, 1],
    [
      'YAML that multiplies itself',
      'a.yaml',
      `- tool: t\n  decision: allow\n  check:\n    a: &a [1,1]\n${'bcdefghij'
        .split('')
        .map((name, at) => `    ${name}: &${name} [${`*${'abcdefghi'[at]},`.repeat(9)}]\n`)
        .join('')}`,
      'sheet_format',
      4,
      5,
    ],
    ['no workbook', 'a.xlsx', 'tool,decision\n', 'sheet_format', 1, 1],
  ];
  for (const [title, name, content, code, line, column] of faults) {
    test(title, async () => {
      const base = await folderWith({ [name]: content });
      const { record, problems } = await compileRulebookFiles([name], base);
      assert.equal(record, undefined);
      const [first] = problems;
      assert.ok(first);
      assert.deepEqual([first.code, first.file, first.line, first.column], [code, name, line, column]);
    });
  }
});

test('a check cell decides by the arguments of the call', async () => {
  const base = await folderWith({
    'a.csv':
      'tool,check,decision\nt,"field: amount, at_most: 100",allow\nt,"[{field: amount, over: 100}, {field: kind, is: gift}]",confirm\n',
  });
  const { record } = await compileRulebookFiles(['.'], base);
  assert.ok(record);
  const prepared = loadRecord(record);
  const check = makeCheckCells();
  for (const [given, expected] of [
    [{ amount: 100 }, 'allow'],
    [{ amount: 101, kind: 'gift' }, 'confirm'],
    [{ amount: 101, kind: 'sale' }, 'no_rule'],
    [{ amount: '100' }, 'rulebook_undecided'],
    [{}, 'rulebook_undecided'],
  ] as const) {
    const decision = decideRulebook(prepared, 't', { facts: {}, arguments: given, check });
    assert.equal(decision.kind === 'refuse' ? decision.reason : decision.kind, expected, JSON.stringify(given));
  }
});

test('a check cell that means nothing is told at its place', async (t) => {
  const file = new URL('../vectors/rulebook-check-cells.json', import.meta.url);
  const { cases } = JSON.parse(readFileSync(file, 'utf8')) as {
    cases: { title: string; cell: string; says?: string }[];
  };
  for (const { title, cell, says } of cases) {
    await t.test(title, async () => {
      const base = await folderWith({ 'a.yaml': `- tool: t\n  check: {${cell}}\n  decision: allow\n` });
      const { record, problems } = await compileRulebookFiles(['.'], base);
      assert.equal(record === undefined, says !== undefined);
      if (says === undefined) return;
      const [{ code, file, line, column, message } = assert.fail('no problem is told')] = problems;
      assert.deepEqual([code, file, line, column], ['check_cell', 'a.yaml', 2, 10]);
      assert.ok(message.includes(says), message);
    });
  }
});

test('a check cell is kept as it was read and evaluated by the caller', async () => {
  const base = await folderWith({
    'a.csv': 'tool,check,decision\nt,"field: amount, at_most: 100",allow\n',
    'b.yaml': '- tool: u\n  check: {field: amount, at_most: 100}\n  when: $ok\n  decision: allow\n',
  });
  const { record } = await compileRulebookFiles(['.'], base);
  assert.ok(record);
  const prepared = loadRecord(record);
  const seen: unknown[] = [];
  const check = (condition: unknown): boolean => seen.push(condition) > 0;
  assert.equal(decideRulebook(prepared, 't', { facts: {}, arguments: {}, check }).kind, 'allow');
  assert.equal(decideRulebook(prepared, 'u', { facts: { ok: true }, arguments: {}, check }).kind, 'allow');
  assert.deepEqual(seen, [
    { field: 'amount', at_most: 100 },
    { field: 'amount', at_most: 100 },
  ]);
  assert.partialDeepStrictEqual(decideRulebook(prepared, 't', { facts: {}, arguments: {} }), {
    kind: 'refuse',
    reason: 'rulebook_undecided',
  });
  const refused = await compileRulebookFiles(['a.csv'], base, { checkFault: () => 'no such operator' });
  assert.partialDeepStrictEqual(refused.problems, [
    { code: 'check_cell', line: 2, column: 3, message: 'no such operator' },
  ]);
});

describe('files and folders', () => {
  test('a folder is read whole, in the order of names, hidden files left out', async () => {
    const base = await folderWith({
      'rules/b.co': 'define flow b\n  execute t\n',
      'rules/a/x.co': 'define flow x\n  execute u\n',
      'rules/.hidden.co': 'define flow h\n  exeute v\n',
      'rules/readme.md': '# no rule',
    });
    const { sources, problems } = await loadRulebookFiles(['rules'], base);
    assert.deepEqual(problems, []);
    assert.deepEqual(
      sources.map((source) => source.file),
      ['rules/a/x.co', 'rules/b.co'],
    );
  });

  test('an import brings in a file beside the rulebook and what that imports', async () => {
    const base = await folderWith({
      'rules/main.co': 'import core\nimport parts.gate\n\nflow main\n  await gate\n  await GoAction()\n',
      'rules/parts/gate.co': 'import "inner"\n\nflow gate\n  inner gate\n',
      'rules/parts/inner/one.co': 'flow inner gate\n  if not $ok\n    abort\n',
    });
    const { record, problems } = await compileRulebookFiles(['rules/main.co'], base);
    assert.deepEqual(problems, []);
    assert.ok(record);
    const prepared = loadRecord(record);
    assert.equal(decideRulebook(prepared, 'go', { facts: { ok: true }, arguments: {} }).kind, 'allow');
    assert.partialDeepStrictEqual(decideRulebook(prepared, 'go', { facts: {}, arguments: {} }), { reason: 'abort' });
  });

  test('an import never leaves the folder of the rulebook, by a path or by a link', async () => {
    const base = await folderWith({
      'rules/up.co': 'import "../secret"\n\nflow f\n  await GoAction()\n',
      'rules/link.co': 'import linked\n\nflow g\n  await GoAction()\n',
      'secret.co': 'flow secret\n  pass\n',
    });
    await symlink(join(base, 'secret.co'), join(base, 'rules/linked.co'));
    const up = await compileRulebookFiles(['rules/up.co'], base);
    assert.partialDeepStrictEqual(up.problems, [{ code: 'import_unresolved', file: 'rules/up.co', line: 1 }]);
    const link = await compileRulebookFiles(['rules/link.co'], base);
    assert.equal(link.record, undefined);
    assert.partialDeepStrictEqual(link.problems, [{ code: 'file_unreadable', file: 'rules/linked.co' }]);
  });

  test('a file that is missing, empty of rules, too large or no text is told', async () => {
    const base = await folderWith({
      'a.txt': 'x',
      'none/readme.md': 'x',
      'large.co': 'x'.repeat(1024 * 1024 + 1),
      'bytes.co': Uint8Array.from([0x64, 0xff, 0xfe]),
    });
    const { problems } = await loadRulebookFiles(['missing.co', 'a.txt', 'none', 'large.co', 'bytes.co'], base);
    assert.deepEqual(
      problems.map((problem) => [problem.file, problem.code]),
      [
        ['missing.co', 'file_unreadable'],
        ['a.txt', 'file_unreadable'],
        ['none', 'file_unreadable'],
        ['large.co', 'too_large'],
        ['bytes.co', 'file_unreadable'],
      ],
    );
  });
});

describe('the commands', () => {
  const policy =
    'define flow refunds\n  user ask refund\n  do gate\n  if $paid\n    execute refund\n  else\n    bot refuse refund\n\ndefine subflow gate\n  if $call.amount > 100\n    bot ask manager\n';

  test('compile prints the governed tools, and warnings with their place', async () => {
    const base = await folderWith({ 'p.co': policy });
    const { text, exitCode } = await runRulesCompile({ files: ['p.co'], base, tools: ['shop/refnd'] });
    assert.equal(exitCode, 0);
    assert.equal(
      text,
      'p.co:5:5: warning: no tool `refund` is in the catalogue, so this rule governs nothing; did you mean `refnd`? [tool_not_in_catalogue]\nflows: 2, of which 1 by itself\ngoverned tools: 1\n  refund\n',
    );
  });

  test('compile prints the record as JSON', async () => {
    const base = await folderWith({ 'p.co': policy });
    const { text, exitCode } = await runRulesCompile({ files: ['p.co'], base, json: true });
    const printed = JSON.parse(text);
    assert.equal(exitCode, 0);
    assert.equal(printed.record.format, 'toolgate-rulebook/1');
    assert.deepEqual(printed.governed, ['refund']);
  });

  test('compile leaves 1 where the rulebook has an error', async () => {
    const base = await folderWith({ 'p.co': 'define flow f\n  exeute t\n' });
    const { text, exitCode } = await runRulesCompile({ files: ['p.co'], base });
    assert.equal(exitCode, 1);
    assert.equal(
      text,
      'p.co:2:3: error: `exeute` is no statement that is known; did you mean `execute`? [statement_unknown]\n',
    );
  });

  test('strict makes an undefined message an error', async () => {
    const base = await folderWith({ 'p.co': policy });
    const { text, exitCode } = await runRulesCompile({ files: ['p.co'], base, strict: true });
    assert.equal(exitCode, 1);
    assert.match(text, /p\.co:7:5: error: .*message_undefined/);
  });

  test('explain tells the flow, the lines and why', async () => {
    const base = await folderWith({ 'p.co': policy });
    const { text, exitCode } = await runRulesExplain({
      files: ['p.co'],
      base,
      tool: 'shop/refund',
      facts: ['paid'],
      arguments: { amount: 500 },
    });
    assert.equal(exitCode, 0);
    assert.equal(
      text,
      `shop/refund: a person is asked: ask manager (refunds, line 5)

refunds (p.co)
  line 2: ask refund: a person speaks
  line 3: calls gate
    line 10: if $call.amount > 100: holds
    line 11: bot ask manager: asks
  line 4: if $paid: holds
  line 5: execute refund: this call
`,
    );
  });

  test('explain tells a pair that rules name where the bare name was asked for', async () => {
    const base = await folderWith({ 'p.co': 'define flow f\n  execute shop/mail\n' });
    const { text } = await runRulesExplain({ files: ['p.co'], base, tool: 'mail' });
    assert.ok(text.endsWith("\nrules name `shop/mail`: a bare name is any server's, a pair is one\n"), text);
  });

  test('explain says that a tool is not governed, and refuses a fact that is none', async () => {
    const base = await folderWith({ 'p.co': policy });
    const other = await runRulesExplain({ files: ['p.co'], base, tool: 'mail' });
    assert.equal(other.text, 'mail: no rule names this tool; the rest of the check decides it\n');
    const near = await runRulesExplain({ files: ['p.co'], base, tool: 'refnd' });
    assert.ok(near.text.endsWith('\nno rule names `refnd`; did you mean `refund`?\n'), near.text);
    const misspelt = await runRulesExplain({ files: ['p.co'], base, tool: 'refund', facts: ['paidd'] });
    assert.ok(misspelt.text.endsWith('\nno rule reads the fact `paidd`; did you mean `paid`?\n'), misspelt.text);
    const wrong = await runRulesExplain({ files: ['p.co'], base, tool: 'refund', facts: ['paid=maybe'] });
    assert.equal(wrong.exitCode, 2);
  });
});
