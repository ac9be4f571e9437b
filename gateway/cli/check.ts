import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import { enforce } from '../enforce.ts';
import type { EnforceRequest, ToolCheck } from '../exchange.ts';
import { CALL_MEMBER_NAMES, parseCallMembers } from '../http/call-members.ts';
import { renderJson } from '../http/problems.ts';
import { createLog } from '../log.ts';
import { ServerRegistry } from '../mcp/server-registry.ts';
import { makeGateway, openAudit, StoreHealth } from '../serve/services.ts';
import { Surface } from '../serve/surface.ts';
import type { WholeConfig } from '../serve/whole-config.ts';
import { openStore } from '../store/open.ts';
import { parseObject } from './arguments.ts';
import { CliFault } from './command.ts';
import { print, printable } from './output.ts';
import { requireWhole } from './require-config.ts';

export interface CheckOptions {
  readonly config: string;
  readonly tool: string;
  readonly args: string;
  readonly agent?: string;
  readonly origins?: string;
  readonly turn?: readonly string[];
  readonly context?: string;
  readonly labels?: string;
  readonly run?: string;
  readonly asAgent?: boolean;
  readonly json?: boolean;
}

/** Asks, prints the answer, and resolves with the exit code. Throws `CliFault` for what cannot be asked. */
export async function runCheck(options: CheckOptions): Promise<0 | 1> {
  const whole = await requireWhole(options.config);
  const check = await ask(whole, requestOf(whole, options));
  await (options.json === true ? print(`${renderJson(check)}\n`) : print(renderCheck(check)));
  return check.decision === 'allow' ? 0 : 1;
}

function requestOf({ config }: WholeConfig, options: CheckOptions): EnforceRequest {
  const { agent, asAgent, turn, run, tool } = options;
  if (agent !== undefined && !config.agents.has(agent)) {
    throw new CliFault(2, `there is no agent \`${agent}\`; there are ${[...config.agents.keys()].join(', ')}`);
  }
  const given: Record<string, JsonValue> = {
    ...(agent === undefined ? {} : { agent }),
    ...(run === undefined ? {} : { run }),
    ...(turn === undefined ? {} : { turns: turn }),
  };
  for (const name of ['origins', 'context', 'labels'] as const) {
    const text = options[name];
    if (text !== undefined) given[name] = parseObject(`--${name}`, text);
  }
  const parsed = parseCallMembers(given, CALL_MEMBER_NAMES);
  if ('problem' in parsed) throw new CliFault(2, parsed.problem.detail);
  const agents = asAgent === true && agent !== undefined ? new Set([agent]) : new Set(config.agents.keys());
  return {
    caller: { name: 'offline', host: asAgent !== true, agents },
    tool,
    arguments: parseObject('--args', options.args),
    members: parsed.members,
    byReceipt: false,
    purpose: 'decide',
    via: 'api',
    wantEntry: false,
    passedHeaders: [],
  };
}

/** A gateway of its own for one question: key, store and log are made in a folder that goes again. */
async function ask(whole: WholeConfig, request: EnforceRequest): Promise<ToolCheck> {
  const folder = await mkdtemp(join(tmpdir(), 'toolgate-check-'));
  const closing: (() => Promise<void>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    const log = createLog({ level: 'error' });
    const signing = nodeCrypto.signingKey(randomBytes(32));
    const store = await openStore(join(folder, 'store.db'));
    closing.unshift(() => store.close());
    const elsewhere = { ...whole.config, audit: { ...whole.config.audit, file: join(folder, 'audit.jsonl') } };
    const audit = await openAudit(elsewhere, store, signing, log, 1);
    closing.unshift(() => audit.close());
    const surface = new Surface(whole, signing, '', new ServerRegistry(log));
    closing.unshift(() => surface.close());
    const never = new AbortController().signal;
    const gateway = makeGateway(surface.loaded, { store, audit }, log, new StoreHealth(log), never);
    const answer = await enforce(gateway, request);
    if (answer.kind === 'decided') return answer.check;
    throw new CliFault(2, answer.kind === 'problem' ? answer.problem.detail : 'the call has no answer');
  } finally {
    for (const close of closing) await close();
  }
}

function renderCheck({ decision, reasons, sentence, pointer, detail }: ToolCheck): string {
  const more = renderJson(detail);
  return printableLines([
    `${decision}: ${reasons.join(', ')}`,
    sentence,
    ...(pointer === undefined ? [] : [`at ${pointer === '' ? 'the arguments as a whole' : pointer}`]),
    ...(more === '{}' ? [] : [more]),
  ]);
}

function printableLines(lines: readonly string[]): string {
  return lines.map((line) => `${printable(line)}\n`).join('');
}
