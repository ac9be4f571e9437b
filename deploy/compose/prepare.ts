import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Makes what the services of docker-compose.yml keep secret, once, in the folder that is named: the store's password and
 * address, the signing key, and an API key for the application, the agent and the approver. The keys are printed; what
 * is kept of them are digests.
 */
const GATEWAY_USER = 10_001;

/** Who calls, and the variable of deploy/compose/gateway.yaml that holds the digest of its key. */
const CALLERS = [
  ['the application that speaks for its person (agent `billing`)', 'APP_DIGEST'],
  ['the agent `desk` on its own', 'DESK_DIGEST'],
  ['the approver `ana`', 'APPROVER_DIGEST'],
] as const;

function prepare(folder: string): void {
  mkdirSync(folder, { recursive: true });
  if (existsSync(join(folder, 'gateway.env'))) {
    process.stdout.write('everything was made before; the API keys are printed on the first start alone\n');
    return;
  }
  const password = randomBytes(24).toString('base64url');
  // PostgreSQL's own user reads the password, after root; the rest is for the gateway's user.
  put(folder, 'postgres-password', password, 0o444);
  put(folder, 'store-url', `postgres://toolgate:${password}@postgres:5432/toolgate\n`, 0o400);
  const { privateKey } = generateKeyPairSync('ed25519');
  put(folder, 'gateway.pem', String(privateKey.export({ type: 'pkcs8', format: 'pem' })), 0o400);
  let variables = '';
  for (const [who, variable] of CALLERS) {
    const key = `tg_${randomBytes(32).toString('base64url')}`;
    variables += `${variable}=sha256:${createHash('sha256').update(key).digest('hex')}\n`;
    process.stdout.write(`API key of ${who}: ${key}\n`);
  }
  // Last, since it says that all else is there.
  put(folder, 'gateway.env', variables, 0o400);
}

function put(folder: string, name: string, text: string, mode: number): void {
  const part = join(folder, `${name}.part`);
  writeFileSync(part, text, { mode });
  if (process.getuid?.() === 0) chownSync(part, GATEWAY_USER, GATEWAY_USER);
  renameSync(part, join(folder, name));
}

prepare(process.argv[2] ?? '/run/toolgate');
