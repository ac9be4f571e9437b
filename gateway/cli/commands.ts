import type { CliCommand } from './command.ts';
import { APPROVALS_COMMAND } from './commands/approvals.ts';
import { AUDIT_COMMAND } from './commands/audit.ts';
import { CHECK_COMMAND } from './commands/check.ts';
import { TOOLS_COMMAND, VALIDATE_COMMAND } from './commands/config.ts';
import { CREDENTIAL_COMMAND } from './commands/credential.ts';
import { DOCTOR_COMMAND } from './commands/doctor.ts';
import { HISTORY_COMMAND, RECEIPT_COMMAND } from './commands/evidence.ts';
import { INIT_COMMAND } from './commands/init.ts';
import { KEYS_COMMAND } from './commands/keys.ts';
import { OUTCOMES_COMMAND } from './commands/outcomes.ts';
import { PIN_COMMAND } from './commands/pin.ts';
import { RULES_COMMAND } from './commands/rules.ts';
import { RUNS_COMMAND } from './commands/runs.ts';
import { SERVE_COMMAND } from './commands/serve.ts';
import { STORE_COMMAND } from './commands/store.ts';
import { USAGE_COMMAND } from './commands/usage.ts';

/** Every command, in the order in which the help lists them. */
export const COMMANDS: readonly CliCommand[] = [
  INIT_COMMAND,
  SERVE_COMMAND,
  VALIDATE_COMMAND,
  TOOLS_COMMAND,
  PIN_COMMAND,
  CHECK_COMMAND,
  RULES_COMMAND,
  APPROVALS_COMMAND,
  OUTCOMES_COMMAND,
  RUNS_COMMAND,
  USAGE_COMMAND,
  HISTORY_COMMAND,
  RECEIPT_COMMAND,
  AUDIT_COMMAND,
  KEYS_COMMAND,
  CREDENTIAL_COMMAND,
  STORE_COMMAND,
  DOCTOR_COMMAND,
];
