import { fileURLToPath } from 'node:url';

/** The absolute path of a file under test/vectors/config/. */
export function vector(name: string): string {
  return fileURLToPath(new URL(`../vectors/config/${name}`, import.meta.url));
}

/** What the configurations among the vectors read from the environment. */
export const ENV: Readonly<Record<string, string>> = {
  TENANT: 'shop',
  BREAK: '\r\nx',
  STORE_URL: 'postgres://gate@127.0.0.1/toolgate',
  STORE_KEY: '00'.repeat(32),
  SHOP_TOKEN: 'swordfish',
};
