import type { CliCommand } from './command.ts';
import { AUDIT_COMMAND } from './commands/audit.ts';
import { CREDENTIAL_COMMAND } from './commands/credential.ts';
import { KEYS_COMMAND } from './commands/keys.ts';

/** Every command, in the order in which the help lists them. */
export const COMMANDS: readonly CliCommand[] = [AUDIT_COMMAND, KEYS_COMMAND, CREDENTIAL_COMMAND];
