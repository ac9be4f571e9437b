import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { type Entry, type History, HistoryFault } from '../../receipts/history.ts';
import { type CarriedHistory, parseHistory } from '../../receipts/history-parse.ts';
import { type VerifiedHistory, verifyHistory } from '../../receipts/history-verify.ts';
import { readJsonFile } from './arguments.ts';
import { readPublicBytes } from './keys.ts';
import { print, printable, printJson, renderColumns } from './output.ts';

export interface HistoryOptions {
  readonly publicKey?: readonly string[];
  readonly audience?: string;
  readonly json?: boolean;
}

/** What is known of a history: that it is genuine, that it is not and why, or that nobody can tell without a key. */
export type Judged =
  | { readonly verdict: 'intact'; readonly history: History; readonly verified: VerifiedHistory }
  | { readonly verdict: 'invalid'; readonly fault: HistoryFault }
  | { readonly verdict: 'cannot_tell'; readonly why: string; readonly history?: History };

const EXITS = { intact: 0, invalid: 1, cannot_tell: 2 } as const;

/** Verifies a file, prints what is found, and resolves with the exit code. Throws `CliFault` for a file or key that is none. */
export async function verifyHistoryFile(file: string, options: HistoryOptions): Promise<0 | 1 | 2> {
  const judged = judgeHistory(file, options);
  await (options.json === true ? printJson(describe(judged)) : print(render(judged)));
  return EXITS[judged.verdict];
}

/** Reads and verifies the history in a file. Throws `CliFault` for a file or key that is none. */
export function judgeHistory(file: string, options: HistoryOptions): Judged {
  const keys = (options.publicKey ?? []).map((text) => ({ key: nodeCrypto.publicKey(readPublicBytes(text)) }));
  const value = readJsonFile(file);
  let parsed: CarriedHistory | undefined;
  try {
    parsed = parseHistory(value);
    if (parsed.kind === 'opening') return { verdict: 'cannot_tell', why: 'it only asks to begin a history' };
    const { history } = parsed;
    if (keys.length === 0) {
      const why = 'it has the form of a history; whether it is genuine only a `--public-key` of its issuer can tell';
      return { verdict: 'cannot_tell', why, history };
    }
    const verified = verifyHistory(history, {
      crypto: nodeCrypto,
      now: Date.now(),
      audience: options.audience ?? history.audience,
      issuers: new Map([[history.issuer, { keys, limits: 'none' }]]),
    });
    return { verdict: 'intact', history, verified };
  } catch (error) {
    if (error instanceof HistoryFault) return { verdict: 'invalid', fault: error };
    throw error;
  }
}

function describe(judged: Judged): object {
  const { verdict } = judged;
  if (judged.verdict === 'invalid') {
    const { fault, entry, message } = judged.fault;
    return { verdict, fault, entry, why: message };
  }
  const why = judged.verdict === 'cannot_tell' ? { why: judged.why } : {};
  if (judged.history === undefined) return { verdict, ...why };
  const { session, issuer, audience, entries } = judged.history;
  return { verdict, ...why, session, issuer, audience, entries: entries.length };
}

function render(judged: Judged): string {
  if (judged.verdict === 'invalid') {
    const { fault, entry, message } = judged.fault;
    return `INVALID: ${printable(message)}\nfault: ${fault}, entry ${entry}\n`;
  }
  const head =
    judged.verdict === 'intact' ? 'intact: every entry is as its issuer signed it' : `cannot tell: ${judged.why}`;
  if (judged.history === undefined) return `${head}\n`;
  const { session, issuer, audience, entries } = judged.history;
  const rows = entries.map((entry) => rowOf(entry).map(printable));
  const whose = renderColumns([
    ['session', printable(session)],
    ['issuer', printable(issuer)],
    ['audience', printable(audience)],
  ]);
  return `${head}\n${whose}${renderColumns([['step', 'at', 'decision', 'tool', 'agent', 'outcome', 'reasons'], ...rows])}`;
}

function rowOf(entry: Entry): readonly string[] {
  const { step, at, decision, tool, agent, outcome, reasons } = entry;
  const time = Number.isSafeInteger(at) && at <= 8.64e15 ? new Date(at).toISOString() : String(at);
  return [String(step), time, decision, tool, agent, outcome ?? '-', reasons.join(', ')];
}
