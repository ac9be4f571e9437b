import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { Metrics } from '../../gateway/metrics.ts';
import { REASONS } from '../../policy/reasons.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy');
const DASHBOARD = readFileSync(join(DEPLOY, 'grafana/dashboard.json'), 'utf8');
const ALERTS = readFileSync(join(DEPLOY, 'prometheus/alerts.yaml'), 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
}
const rules = (parse(ALERTS) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);
const panels = (JSON.parse(DASHBOARD) as { panels: { title: string; targets: { expr: string }[] }[] }).panels;
const expressions = [
  ...rules.map(({ expr }) => expr),
  ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
];

/** What a gateway exposes: every series name, and the values of labels that are there from the start. */
async function exposed(): Promise<{ readonly names: ReadonlySet<string>; readonly text: string }> {
  const text = await new Metrics({ storeCounts: async () => [], storeIsUp: () => true, sessions: () => 0 }).render();
  const names = new Set<string>();
  for (const [, name = '', type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    names.add(name);
    if (type === 'histogram') for (const end of ['_bucket', '_sum', '_count']) names.add(`${name}${end}`);
  }
  return { names, text };
}

describe('dashboard and alerts', () => {
  test('every metric that they name is exposed', async () => {
    const { names } = await exposed();
    const named = expressions.flatMap((expr) => expr.match(/\b(?:toolgate|process|nodejs)_[a-z0-9_]+/g) ?? []);
    assert.ok(named.length > 40);
    assert.deepEqual([...new Set(named)].filter((name) => !names.has(name)).sort(), []);
  });

  test('every metric of the gateway is on the dashboard', async () => {
    const { names } = await exposed();
    const missing = [...names].filter(
      (name) => /^toolgate_(?!.*_(?:bucket|sum|count)$)/.test(name) && !DASHBOARD.includes(name),
    );
    assert.deepEqual(missing, []);
  });

  test('the values of labels that they choose by are values that the gateway gives', async () => {
    const { text } = await exposed();
    for (const expr of expressions) {
      for (const [, label = '', operator, value = ''] of expr.matchAll(/(state|result|reason)(=~|=)"([^"]+)"/g)) {
        for (const one of operator === '=~' ? value.split('|') : [value]) {
          const known = label === 'reason' ? Object.hasOwn(REASONS, one) : text.includes(`${label}="${one}"`);
          assert.ok(known, `\`${label}="${one}"\` in \`${expr}\``);
        }
      }
    }
  });

  test('every alert says how bad it is and what is the matter, and docs/operations.md what to do', () => {
    const operations = readFileSync(join(DEPLOY, '../docs/operations.md'), 'utf8');
    for (const { alert, labels, annotations } of rules) {
      assert.match(labels['severity'] ?? '', /^(page|ticket)$/, alert);
      assert.ok((annotations['summary'] ?? '') !== '', alert);
      assert.ok(operations.includes(`\`${alert}\``), `docs/operations.md says nothing of \`${alert}\``);
    }
    for (const [, name = ''] of operations.matchAll(/^\| `(Toolgate\w+)`/gm)) {
      assert.ok(
        rules.some(({ alert }) => alert === name),
        `there is no alert \`${name}\``,
      );
    }
  });
});
