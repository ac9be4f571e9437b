import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { renderProblems } from '../../../gateway/config/problem.ts';
import { createLog } from '../../../gateway/log.ts';
import { runGateway } from '../../../gateway/serve/run-gateway.ts';
import { StartFault } from '../../../gateway/serve/start-fault.ts';
import { ConfigRefused } from '../../../gateway/serve/whole-config.ts';
import { type Shop, startShop } from './backend.ts';

/**
 * `npm start`: the shop's backend, the gateway in front of it, and three calls to try. `npm start -- --port 8081
 * --shop-port 9101` runs a copy of the example elsewhere (0: any free port), with its files in `--folder`.
 */
const HERE = fileURLToPath(new URL('.', import.meta.url));
const PORT = 8080;
const SHOP_PORT = 9100;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { port: { type: 'string' }, 'shop-port': { type: 'string' }, folder: { type: 'string' } },
  });
  const shop = await openShop(Number(values['shop-port'] ?? SHOP_PORT));
  const moved = Object.keys(values).length > 0;
  const port = values.port ?? String(PORT);
  const configFile = moved
    ? await copyConfig(values.folder ?? join(HERE, 'data', `port-${port}`), port, shop.url)
    : join(HERE, 'gateway.yaml');
  const log = createLog({ level: 'warn' });
  const gateway = await runGateway({ configFile, env: process.env, log });
  process.stdout.write(renderWelcome(gateway.url, shop.url));
  const stop = (): void => {
    process.stdout.write('\nstopping: calls that were accepted are finished first\n');
    gateway
      .close()
      .then(() => shop.close())
      .then(
        () => process.exit(0),
        (error: unknown) => {
          log.fatal({ err: error }, 'the shop did not stop cleanly');
          process.exit(1);
        },
      );
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
}

async function openShop(port: number): Promise<Shop> {
  try {
    return await startShop(port);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`its backend cannot listen on port ${port}: ${why}; end what listens there, or say --shop-port`);
  }
}

/** The example's config for other ports; its key, store and log stand beside it. */
async function copyConfig(folder: string, port: string, shopUrl: string): Promise<string> {
  const text = await readFile(join(HERE, 'gateway.yaml'), 'utf8');
  const copy = text
    .replace(`127.0.0.1:${PORT}`, `127.0.0.1:${port}`)
    .replace(`http://127.0.0.1:${SHOP_PORT}`, shopUrl)
    .replaceAll('./data/', './');
  await mkdir(folder, { recursive: true });
  const file = join(folder, 'gateway.yaml');
  await writeFile(file, copy);
  return file;
}

function renderWelcome(gateway: string, shop: string): string {
  const call = (more: string): string => `curl -s -i ${gateway}${more}`;
  return `
The shop listens at ${shop}, and Toolgate at ${gateway} in front of it.
No credentials are configured: only this machine may call, as a host.

1. A read, allowed and forwarded:

   ${call('/shop/orders/4411')} -H 'Toolgate-Agent: desk' -H 'Toolgate-Session: demo'

2. A write: the first answer is 428 and carries a token; with the token, the same call runs, once:

   CHARGE="-X POST ${gateway}/shop/charges -H Toolgate-Agent:desk -H Toolgate-Session:demo -H Content-Type:application/json"
   TOKEN=$(curl -s $CHARGE -d '{"order_id":"4411","amount":40}' | tee /dev/stderr | sed -n 's/.*"token":"\\([^"]*\\)".*/\\1/p')
   curl -s -i $CHARGE -H "Toolgate-Confirmation: $TOKEN" -d '{"order_id":"4411","amount":40}'

3. An argument that nobody declared, refused; the shop never sees it:

   ${call('/shop/charges')} -X POST -H 'Toolgate-Agent: desk' -H 'Toolgate-Session: demo' -H 'Content-Type: application/json' -d '{"order_id":"4411","amount":40,"note":"x"}'

Stop with Ctrl-C.
`;
}

main().catch((error: unknown) => {
  if (error instanceof ConfigRefused) process.stderr.write(renderProblems(error.problems));
  else if (error instanceof StartFault) process.stderr.write(`error: ${error.message}; or say --port\n`);
  else process.stderr.write(`the shop did not start: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
