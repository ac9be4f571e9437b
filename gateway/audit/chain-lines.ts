import { hash } from 'node:crypto';
import { encodeBase64url } from '../../receipts/base64url.ts';
import type { SigningKey } from '../../receipts/crypto.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import { type Draft, draftObject, FORMAT, placeDraft } from './line.ts';

/** Where a chain stands: its newest line. */
export interface ChainHead {
  readonly seq: number;
  /** Hash of that line. */
  readonly hash: string;
}

/** Names a public key in checkpoints, so that a verifier with several knows which to take: base64url of 12 bytes of its SHA-256. */
export function keyIdOf(publicBytes: Uint8Array): string {
  return hash('sha256', publicBytes, 'buffer').subarray(0, 12).toString('base64url');
}

const CHECKPOINT_DOMAIN = 'qls-audit/1 checkpoint\0';

/** First line of every file. */
export interface OpenLine {
  readonly replica: string;
  readonly time: string;
  /** A checkpoint comes at least this often. */
  readonly every: { readonly lines: number; readonly ms: number };
  /** Every prepared line up to this `n` stands in this file or in an earlier one. */
  readonly written: number;
  /** No number above this one was given to a line before. */
  readonly prepared: number;
  /** The line that the file before ended with. */
  readonly previous?: ChainHead;
  /** Where the log had been, by its own note, when a shorter one was found. */
  readonly lost?: ChainHead;
}

export function draftOpen(open: OpenLine): Draft {
  const { replica, time, every, written, prepared, previous, lost } = open;
  return draftObject({
    event: 'open',
    format: FORMAT,
    replica,
    time,
    every: { lines: every.lines, ms: every.ms },
    written,
    prepared,
    ...(previous === undefined ? {} : { previous: { ...previous } }),
    ...(lost === undefined ? {} : { lost: { ...lost } }),
  });
}

/** Written when the log could be written to again. */
export function draftRecovered(time: string, downSince: string, why: string): Draft {
  return draftObject({ event: 'recovered', time, since: downSince, why });
}

/**
 * A checkpoint at its place in the chain. The signature is over the ASCII `qls-audit/1 checkpoint`, 0x00 and the line
 * as it would be without `signature`; that line names the hash before it, so the signature covers the whole chain.
 */
export function signCheckpoint(
  place: { readonly seq: number; readonly prev: string; readonly replica: string; readonly time: string },
  written: number,
  signer: SigningKey,
): string {
  const members: JsonObject = {
    event: 'checkpoint',
    key: keyIdOf(signer.publicBytes),
    replica: place.replica,
    time: place.time,
    written,
  };
  const unsigned = placeDraft(draftObject(members), place.seq, place.prev);
  const signature = encodeBase64url(signer.sign(checkpointMessage(unsigned)));
  return placeDraft(draftObject({ ...members, signature }), place.seq, place.prev);
}

/** What a checkpoint's signature is over. */
export function checkpointMessage(unsigned: string): Uint8Array {
  return Buffer.from(CHECKPOINT_DOMAIN + unsigned, 'utf8');
}

/** A checkpoint line as read in, the line that its signature is over out. */
export function unsignedCheckpoint(line: JsonObject): string {
  const { signature: _, prev, seq, ...members } = line;
  return placeDraft(draftObject(members), Number(seq), String(prev));
}
