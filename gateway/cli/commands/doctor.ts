import { type Command, Option } from 'commander';
import { type CliCommand, renderExamples } from '../command.ts';
import type { DoctorOptions } from '../doctor.ts';

/** `toolgate doctor`: a configuration against the world that it is to run in. */
export const DOCTOR_COMMAND: CliCommand = {
  name: 'doctor',
  register(program: Command): void {
    program
      .command('doctor')
      .description('hold a configuration against the world that it runs in, and say what to do: exit 0 sound, 1 not')
      .option('-c, --config <file>', 'the configuration', 'gateway.yaml')
      .addOption(
        new Option(
          '--as <who>',
          'where it is run: beside the `gateway`, or on a machine of an `agent`, which must not reach any backend',
        )
          .choices(['gateway', 'agent'])
          .default('gateway'),
      )
      .option('--json', 'print JSON')
      .addHelpText('after', renderExamples('toolgate doctor', 'toolgate doctor -c gateway.yaml --as agent'))
      .action(async (options: DoctorOptions) => {
        const { runDoctor } = await import('../doctor.ts');
        process.exitCode = await runDoctor(options);
      });
  },
};
