import { X509Certificate } from 'node:crypto';
import { constants } from 'node:fs';
import { access, readFile, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { KeyFault, parseSigningKey } from '../../receipts/keys.ts';
import { systemCode } from '../audit/fault.ts';
import type { Config } from '../config/config.ts';
import { messageOf } from '../message-of.ts';
import { checkStore } from '../store/check-store.ts';
import type { Finding } from './doctor.ts';

const DAY_MS = 86_400_000;
/** A renewal that has not come by then has failed. */
const SOON_MS = 14 * DAY_MS;
const FREE_BYTES = 1 << 30;

/** The signing key, and the ends of the keys that are accepted. */
export async function diagnoseKeys(config: Config, now: number): Promise<readonly Finding[]> {
  const findings = [await signingKey(config.keys.signingFile)];
  for (const { id, notAfterMs, revokedAtMs } of config.keys.issuers) {
    const end = Math.min(notAfterMs ?? Number.POSITIVE_INFINITY, revokedAtMs ?? Number.POSITIVE_INFINITY);
    if (end - now > SOON_MS) continue;
    const found =
      end <= now ? 'its key is past its end: no receipt of it is accepted' : 'its key ends within two weeks';
    const remedy = 'give it another key under `keys.issuers`, or take it out';
    findings.push({ about: `issuer ${id}`, state: 'warning', found, remedy });
  }
  return findings;
}

async function signingKey(file: string): Promise<Finding> {
  const about = 'signing key';
  try {
    nodeCrypto.signingKey(parseSigningKey(await readFile(file, 'utf8')));
    const { mode } = await stat(file);
    if ((mode & 0o007) === 0) return { about, state: 'ok', found: `\`${file}\`` };
    const found = `\`${file}\` can be read by every user of this machine`;
    return { about, state: 'fault', found, remedy: `chmod 0600 ${file}, and think of changing the key` };
  } catch (error) {
    if (error instanceof KeyFault) {
      return { about, state: 'fault', found: `\`${file}\`: ${error.message}`, remedy: 'put the right file there' };
    }
    if (systemCode(error) !== 'ENOENT') {
      return {
        about,
        state: 'fault',
        found: `\`${file}\` cannot be read: ${systemCode(error)}`,
        remedy: 'let this user read it',
      };
    }
    return { about, state: 'ok', found: `\`${file}\` is not there yet; the first start makes it` };
  }
}

/** The ends of the certificates that the gateway shows. */
export async function diagnoseCertificates(config: Config, now: number): Promise<readonly Finding[]> {
  const shown: (readonly [string, string])[] = [];
  if (config.listen.tls !== undefined) {
    shown.push(['certificate of `listen`', await readFile(config.listen.tls.certFile, 'utf8')]);
  }
  for (const { name, upstreamTls } of config.routes) {
    if (upstreamTls?.cert !== undefined) shown.push([`certificate for the upstream of ${name}`, upstreamTls.cert]);
  }
  return shown.map(([about, text]) => {
    const left = new X509Certificate(text).validToDate.getTime() - now;
    const found = left < 0 ? 'it has run out' : `it holds for ${Math.floor(left / DAY_MS)} more days`;
    if (left > SOON_MS) return { about, state: 'ok', found };
    return { about, state: left < 0 ? 'fault' : 'warning', found, remedy: 'renew it, and send the gateway SIGHUP' };
  });
}

/** Whether the store is sound and can be written. */
export async function diagnoseStore({ store }: Config): Promise<readonly Finding[]> {
  const about = 'store';
  const { target, encryptionKey } = store;
  if (target.kind === 'sqlite' && !(await canWrite(target.file))) {
    const why = await folderFault(target.file);
    if (why === undefined)
      return [{ about, state: 'ok', found: `\`${target.file}\` is not there yet; the first start makes it` }];
    return [
      {
        about,
        state: 'fault',
        found: `\`${target.file}\`: ${why}`,
        remedy: 'let this user write the file and its folder',
      },
    ];
  }
  try {
    const report = await checkStore(target.kind === 'sqlite' ? target.file : target.url.reveal(), encryptionKey);
    const what = report.kind === 'sqlite' ? 'SQLite' : 'PostgreSQL';
    const [first] = report.problems;
    if (first !== undefined) {
      return [{ about, state: 'fault', found: first, remedy: '`toolgate store check` tells all; put back a backup' }];
    }
    return [
      { about, state: 'ok', found: `${what}, schema ${report.schema}, ${report.encrypted ? '' : 'not '}encrypted` },
    ];
  } catch (error) {
    // A file that is no database at all comes as the error of SQLite itself.
    const found = messageOf(error);
    return [{ about, state: 'fault', found, remedy: 'see that it runs, and that `store` says where' }];
  }
}

/** Whether the audit log can be written, and goes on to be. */
export async function diagnoseAudit({ audit }: Config): Promise<readonly Finding[]> {
  const about = 'audit log';
  if (audit.file === 'stdout') return [{ about, state: 'ok', found: 'standard output' }];
  if (!(await canWrite(audit.file))) {
    const why = await folderFault(audit.file);
    if (why !== undefined) {
      return [
        { about, state: 'fault', found: `\`${audit.file}\`: ${why}`, remedy: 'without it every call is refused' },
      ];
    }
  }
  const place = await firstFolder(audit.file);
  const { bavail, bsize } = await statfs(place);
  if (bavail * bsize >= FREE_BYTES) return [{ about, state: 'ok', found: `\`${audit.file}\`` }];
  const found = `less than 1 GiB is free at \`${place}\``;
  return [{ about, state: 'warning', found, remedy: 'make room: a log that cannot be written refuses every call' }];
}

function canWrite(file: string): Promise<boolean> {
  return access(file, constants.W_OK).then(
    () => true,
    () => false,
  );
}

/** Why a file cannot be made; undefined where it can. */
async function folderFault(file: string): Promise<string | undefined> {
  try {
    await access(file, constants.F_OK);
    return 'this user may not write it';
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') return `it cannot be looked at: ${systemCode(error)}`;
  }
  const folder = await firstFolder(file);
  return (await canWrite(folder)) ? undefined : `this user may not write in \`${folder}\``;
}

/** The nearest folder above a file that is there. */
async function firstFolder(file: string): Promise<string> {
  const folder = dirname(file);
  if (folder === file) return folder;
  return access(folder, constants.F_OK).then(
    () => folder,
    () => firstFolder(folder),
  );
}
