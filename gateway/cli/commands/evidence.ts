import type { Command } from 'commander';
import { type CliCommand, renderExamples } from '../command.ts';
import type { HistoryOptions } from '../history.ts';
import type { ReceiptOptions } from '../receipt.ts';

const PUBLIC_KEY = [
  '--public-key <key...>',
  "the issuer's public key, a PEM file or base64url; several after a rotation",
] as const;

/** `toolgate history`: is a history as its issuer signed it. */
export const HISTORY_COMMAND: CliCommand = {
  name: 'history',
  register(program: Command): void {
    const history = program.command('history').description('verify histories (qls-history/1)');
    history
      .command('verify')
      .description(
        'say whether a history is as its issuer signed it, entry by entry: exit 0 intact, 1 invalid, 2 cannot tell',
      )
      .argument('<file>', 'a JSON file, or - for standard input')
      .option(...PUBLIC_KEY)
      .option('--audience <audience>', 'the audience that it must be for')
      .option('--json', 'print JSON')
      .addHelpText(
        'after',
        renderExamples(
          'toolgate history verify chat-17.json --public-key keys/gateway.pub',
          'curl -s http://127.0.0.1:8080/v1/sessions/chat-17 | toolgate history verify - --public-key keys/gateway.pub',
        ),
      )
      .action(async (file: string, options: HistoryOptions) => {
        const { verifyHistoryFile } = await import('../history.ts');
        process.exitCode = await verifyHistoryFile(file, options);
      });
  },
};

/** `toolgate receipt`: would a history's last entry admit a call. */
export const RECEIPT_COMMAND: CliCommand = {
  name: 'receipt',
  register(program: Command): void {
    const receipt = program.command('receipt').description('verify receipts: histories whose last entry admits a call');
    receipt
      .command('verify')
      .description(
        'say whether a receipt admits a call, so far as the receipt itself tells (not: whether it was used before): exit 0 yes, 1 no, 2 cannot tell',
      )
      .argument('<file>', 'a JSON file with a whole or cut history, or - for standard input')
      .option(...PUBLIC_KEY)
      .option('--tool <tool>', 'the tool that is called, with its server; not compared where absent')
      .option('--args <json>', 'the arguments as they are sent; not compared where absent')
      .option('--agent <agent>', 'the agent that calls; not compared where absent')
      .option('--audience <audience>', 'the audience that it must be for')
      .option('--json', 'print JSON')
      .addHelpText(
        'after',
        renderExamples(
          'toolgate receipt verify receipt.json --public-key keys/gateway.pub --tool shop/get_order --args \'{"order_id":"4411"}\'',
        ),
      )
      .action(async (file: string, options: ReceiptOptions) => {
        const { verifyReceiptFile } = await import('../receipt.ts');
        process.exitCode = await verifyReceiptFile(file, options);
      });
  },
};
