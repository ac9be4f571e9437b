import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { CliFault, renderExamples } from './command.ts';
import { COMMANDS } from './commands.ts';

/** The program with all its commands; `parseAsync` of it throws `CommanderError` where another would exit. */
export function createProgram(): Command {
  const program = new Command('toolgate')
    .description(
      'An enforcement gateway for the tool calls of AI agents: every call is checked or proved by a receipt, runs once, and can be undone.',
    )
    .version(readVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'say how a command is used')
    .helpCommand('help [command]', 'say how a command is used')
    .showHelpAfterError('(add --help for how it is used)')
    .exitOverride()
    .addHelpText(
      'after',
      renderExamples(
        'toolgate serve -c gateway.yaml         run a gateway',
        'toolgate validate gateway.yaml         every fault of a configuration, at its place',
        'toolgate credential new                an API key for an agent',
        'toolgate audit verify logs/audit.jsonl --public-key keys/gateway.pub',
      ),
    );
  for (const command of COMMANDS) command.register(program);
  return program;
}

/**
 * Runs one command line (without the program's name) and sets `process.exitCode`: 0, 1 for a no, 2 for a wrong use or
 * where there is no answer. Never rejects.
 */
export async function runToolgate(args: readonly string[]): Promise<void> {
  if (!process.stdout.listeners('error').includes(endWithReader)) process.stdout.on('error', endWithReader);
  try {
    await createProgram().parseAsync([...args], { from: 'user' });
  } catch (error) {
    process.exitCode = report(error);
  }
}

/** `toolgate audit query ... | head`: the reader has all that it wanted. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit();
  process.stderr.write(`error: cannot write to standard output: ${error.message}\n`);
  process.exit(2);
}

function report(error: unknown): number {
  // commander has said what is wrong by itself.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof CliFault) {
    process.stderr.write(`error: ${error.message}\n`);
    return error.exit;
  }
  process.stderr.write(`error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return 2;
}

/** From the package's own file, which stands one folder further up for the built program. */
function readVersion(): string {
  for (const place of ['../../package.json', '../../../package.json']) {
    let text: string;
    try {
      text = readFileSync(new URL(place, import.meta.url), 'utf8');
    } catch {
      continue;
    }
    const { name, version } = JSON.parse(text) as Partial<Record<string, unknown>>;
    if (name === 'toolgate' && typeof version === 'string') return version;
  }
  return 'unknown';
}
