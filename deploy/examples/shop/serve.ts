import { startShop } from './backend.ts';

/** The shop's backend by itself, where `SHOP_HOST` and `SHOP_PORT` say. */
async function main(): Promise<void> {
  const shop = await startShop(Number(process.env['SHOP_PORT'] ?? 9100), process.env['SHOP_HOST'] ?? '127.0.0.1');
  process.stdout.write(`the shop listens at ${shop.url}\n`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      shop.close().then(
        () => process.exit(0),
        (error: unknown) => {
          process.stderr.write(`${String(error)}\n`);
          process.exit(1);
        },
      );
    });
  }
}

await main();
