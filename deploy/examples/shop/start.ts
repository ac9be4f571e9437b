import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { renderProblems } from '../../../gateway/config/problem.ts';
import { createLog } from '../../../gateway/log.ts';
import { runGateway } from '../../../gateway/serve/run-gateway.ts';
import { ConfigRefused } from '../../../gateway/serve/whole-config.ts';
import { startShop } from './backend.ts';

/** `npm start`: the shop's backend, the gateway in front of it, and three calls to try. */
const SHOP_PORT = 9100;

async function main(): Promise<void> {
  const configFile = fileURLToPath(new URL('gateway.yaml', import.meta.url));
  await mkdir(fileURLToPath(new URL('data', import.meta.url)), { recursive: true });
  const shop = await startShop(SHOP_PORT);
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
  if (error instanceof ConfigRefused) process.stderr.write(`${renderProblems(error.problems)}\n`);
  else process.stderr.write(`the shop did not start: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
