import { checkpointMessage, keyIdOf, unsignedCheckpoint } from '../../gateway/audit/chain-lines.ts';
import { draftObject, hashLine, placeDraft } from '../../gateway/audit/line.ts';
import { encodeBase64url } from '../../receipts/base64url.ts';
import type { SigningKey } from '../../receipts/crypto.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import { SIGNER } from './support.ts';

/** One thing that is done to a log; the first member says which. */
export type Step =
  | { readonly edit: number; readonly from: string; readonly to: string }
  | { readonly bytes: number; readonly from: string; readonly hex: string }
  | { readonly insert: number; readonly text: string }
  | { readonly delete: number }
  | { readonly swap: readonly [number, number] }
  | { readonly repeat: number }
  | { readonly append: number }
  | { readonly replace: number; readonly by: number }
  | { readonly keep: number }
  | { readonly cut: number }
  | { readonly rechain: number; readonly sign?: 'other' | 'forged' | 'gateway' }
  | { readonly splice: number; readonly from: number };

export const OTHER: SigningKey = nodeCrypto.signingKey(Buffer.alloc(32, 9));

/** The text of a log after somebody was at it. `other` is the log of another replica. */
export function tamper(log: readonly string[], other: readonly string[], steps: readonly Step[]): Buffer {
  let lines: Buffer[] = log.map((line) => Buffer.from(line));
  let cutBytes = 0;
  for (const step of steps) {
    const at = (index: number): Buffer => lines[index] ?? Buffer.alloc(0);
    if ('edit' in step) lines[step.edit] = Buffer.from(replaceOnce(String(at(step.edit)), step.from, step.to));
    else if ('bytes' in step) lines[step.bytes] = replaceBytes(at(step.bytes), step.from, Buffer.from(step.hex, 'hex'));
    else if ('insert' in step) lines.splice(step.insert, 0, Buffer.from(step.text));
    else if ('delete' in step) lines.splice(step.delete, 1);
    else if ('swap' in step) [lines[step.swap[0]], lines[step.swap[1]]] = [at(step.swap[1]), at(step.swap[0])];
    else if ('repeat' in step) lines.splice(step.repeat, 0, at(step.repeat));
    else if ('append' in step) lines.push(at(step.append));
    else if ('replace' in step) lines[step.replace] = at(step.by);
    else if ('keep' in step) lines = lines.slice(0, step.keep);
    else if ('cut' in step) cutBytes = step.cut;
    else if ('splice' in step)
      lines = [...lines.slice(0, step.splice), ...other.slice(step.from).map((l) => Buffer.from(l))];
    else lines = rechain(lines.map(String), step.rechain, step.sign).map((line) => Buffer.from(line));
  }
  const whole = Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')]));
  return whole.subarray(0, whole.length - cutBytes);
}

function replaceOnce(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`the vector edits \`${from}\`, which is not in ${text}`);
  return text.replace(from, () => to);
}

function replaceBytes(line: Buffer, from: string, to: Buffer): Buffer {
  const at = line.indexOf(from);
  return Buffer.concat([line.subarray(0, at), to, line.subarray(at + from.length)]);
}

function rechain(lines: readonly string[], from: number, sign: 'other' | 'forged' | 'gateway' | undefined): string[] {
  const out = lines.slice(0, from);
  for (let seq = from; seq < lines.length; seq++) {
    const { prev: _, seq: __, ...members } = JSON.parse(lines[seq] ?? '') as JsonObject;
    out.push(placed(members, seq, hashLine(out[seq - 1] ?? ''), sign));
  }
  return out;
}

function placed(
  members: JsonObject,
  seq: number,
  prev: string,
  sign: 'other' | 'forged' | 'gateway' | undefined,
): string {
  if (members['event'] !== 'checkpoint' || sign === undefined) return placeDraft(draftObject(members), seq, prev);
  const signer = sign === 'gateway' ? SIGNER : OTHER;
  const claimed = sign === 'other' ? OTHER : SIGNER;
  const unsigned: JsonObject = { ...members, key: keyIdOf(claimed.publicBytes), prev, seq };
  const signature = encodeBase64url(signer.sign(checkpointMessage(unsignedCheckpoint(unsigned))));
  return placeDraft(draftObject({ ...members, key: keyIdOf(claimed.publicBytes), signature }), seq, prev);
}
