import { constants } from 'node:fs';
import { access, link, mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, join, relative, resolve } from 'node:path';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { renderPublicKeyPem } from '../../receipts/keys.ts';
import { loadGateway } from '../catalogue/load-gateway.ts';
import { newCredential } from '../config/credential.ts';
import { renderProblems } from '../config/problem.ts';
import { catalogueDeps } from '../load/catalogue-deps.ts';
import { readOrMakeSigningKey } from '../load/signing-key.ts';
import { lookAtServers } from '../mcp/look-at-servers.ts';
import { CliFault } from './command.ts';
import { findBackend, type InitSource } from './init-backend.ts';
import { renderStarter, type Starter } from './init-starter.ts';

export interface InitOptions extends InitSource {
  readonly dir: string;
  readonly name: string;
  readonly listen: string;
}

/**
 * Writes a configuration that works as it is, a pair of keys and the digest of a new API key, for a backend that the
 * person names. Resolves with what to tell, the key in it, once. Nothing that is there already is written over. Throws
 * `CliFault`.
 */
export async function makeStarter(options: InitOptions): Promise<string> {
  const folder = resolve(options.dir);
  const file = join(folder, 'gateway.yaml');
  await mkdir(folder, { recursive: true });
  if (await isThere(file)) throw new CliFault(1, `\`${file}\` is there already; name another folder with \`--dir\``);
  const backend = await findBackend(options, folder);
  const { key, digest } = newCredential();
  const starter: Starter = { name: options.name, listen: options.listen, digest, backend, tools: [] };
  const part = join(folder, '.gateway.yaml.part');
  try {
    // The tools are read from what the gateway itself makes of the backend, and the whole is loaded before it stays.
    const first = await load(part, renderStarter(starter));
    // What is recorded of an MCP server besides its tools (`resources/read`) takes no words of its own.
    const own = [...first.built.catalogue.tools.values()].filter(({ name }) => !name.includes('/'));
    const tools = own.map((tool) => {
      const operation = first.built.settings.get(tool.id)?.operation;
      return {
        name: tool.name,
        writes: tool.writes,
        partial: tool.input.partial.length > 0,
        ...(operation === undefined ? {} : { request: `${operation.method} ${operation.pathTemplate}` }),
      };
    });
    if (tools.length === 0)
      throw new CliFault(1, `\`${options.openapi ?? options.upstream ?? options.mcp?.join(' ')}\` describes no call`);
    await load(part, renderStarter({ ...starter, tools }));
    await makeKeys(folder);
    await link(part, file);
    return renderDone(folder, file, key, options, tools.length);
  } finally {
    await rm(part, { force: true });
  }
}

async function load(
  file: string,
  text: string,
): Promise<NonNullable<Awaited<ReturnType<typeof loadGateway>>['loaded']>> {
  await writeFile(file, text, { mode: 0o640 });
  const { loaded, problems } = await lookAtServers((mcp) => loadGateway(file, { env: {} }, catalogueDeps({ mcp })));
  if (loaded === undefined) {
    process.stderr.write(renderProblems(problems));
    throw new CliFault(1, 'no configuration could be made of this backend; see the faults above');
  }
  return loaded;
}

async function makeKeys(folder: string): Promise<void> {
  const { key } = await readOrMakeSigningKey(nodeCrypto, join(folder, 'keys/gateway.pem'));
  await writeFile(join(folder, 'keys/gateway.pub'), renderPublicKeyPem(key.publicBytes), { mode: 0o644 });
}

function renderDone(
  folder: string,
  file: string,
  key: string,
  { name, listen, mcp }: InitOptions,
  tools: number,
): string {
  const shown = relative(process.cwd(), file) || basename(file);
  return `${file}  ${tools} ${tools === 1 ? 'tool' : 'tools'}; read what is assumed of each, and change what is wrong
${join(folder, 'keys')}/gateway.pem, gateway.pub  the keys that sign histories; keep the first secret, and out of version control

API key of the application, shown this once: ${key}

Next:
  toolgate tools ${shown}
  toolgate serve -c ${shown}
  curl -i http://${listen}/v1/tools -H 'Authorization: Bearer ${key}'
and send its calls to http://${listen}/${mcp === undefined ? `${name}/...` : 'mcp'} in place of the backend.
`;
}

async function isThere(file: string): Promise<boolean> {
  return access(file, constants.F_OK).then(
    () => true,
    () => false,
  );
}
