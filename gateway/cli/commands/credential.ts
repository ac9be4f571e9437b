import type { Command } from 'commander';
import { newCredential } from '../../config/credential.ts';
import { type CliCommand, renderExamples } from '../command.ts';
import { print, printJson } from '../output.ts';

/** `toolgate credential`: API keys, of which the gateway knows digests alone. */
export const CREDENTIAL_COMMAND: CliCommand = {
  name: 'credential',
  register(program: Command): void {
    const credential = program.command('credential').description('make API keys for agents, hosts and approvers');
    credential
      .command('new')
      .description('make an API key and print it, once, with the digest that the config takes')
      .option('--name <name>', 'name of the credential, for the line of the config')
      .option('--host', 'the line of the config is that of a host, which speaks for its person')
      .option('--json', 'print JSON')
      .addHelpText('after', renderExamples('toolgate credential new', 'toolgate credential new --host --name shop-app'))
      .action((options: { name?: string; host?: boolean; json?: boolean }) => makeCredential(options));
  },
};

async function makeCredential(options: { name?: string; host?: boolean; json?: boolean }): Promise<void> {
  const { key, digest } = newCredential();
  if (options.json === true) return printJson({ key, digest });
  await print(
    [
      `key:     ${key}`,
      `digest:  ${digest}`,
      `config:  credentials: [${configLine(digest, options.name, options.host === true)}]`,
      '',
      'The key is shown this once and stored nowhere. Give it to its caller, and the digest to the config.',
      '',
    ].join('\n'),
  );
}

function configLine(digest: string, name: string | undefined, host: boolean): string {
  if (name === undefined && !host) return `"${digest}"`;
  const words = [`key: "${digest}"`, ...(host ? ['host: true'] : []), ...(name === undefined ? [] : [`name: ${name}`])];
  return `{${words.join(', ')}}`;
}
