import { diagnoseAudit, diagnoseCertificates, diagnoseKeys, diagnoseStore } from './doctor-machine.ts';
import { diagnoseTracing } from './doctor-tracing.ts';
import { diagnoseClock, diagnoseUpstreams, type Reached, reachUpstreams } from './doctor-upstreams.ts';
import { print, printable, printJson, renderColumns } from './output.ts';
import { requireWhole } from './require-config.ts';

export interface DoctorOptions {
  readonly config: string;
  readonly as: 'gateway' | 'agent';
  readonly json?: boolean;
}

/** One thing that was looked at. */
export interface Finding {
  readonly about: string;
  readonly state: 'ok' | 'warning' | 'fault';
  readonly found: string;
  /** What to do; absent where all is well. */
  readonly remedy?: string;
}

/** Looks at everything that a config leans on, prints what is found, and resolves with the exit code. Throws `CliFault`. */
export async function runDoctor(options: DoctorOptions): Promise<0 | 1> {
  const findings = await diagnose(options);
  await (options.json === true ? printJson({ findings }) : print(renderFindings(findings)));
  return findings.some(({ state }) => state === 'fault') ? 1 : 0;
}

/** What there is to say of a config in the world around it. Throws `CliFault` for a config with faults. */
export async function diagnose({ config: file, as }: DoctorOptions): Promise<readonly Finding[]> {
  const { config, built, warnings } = await requireWhole(file);
  const reached = await reachUpstreams(built.routes);
  const findings: Finding[] = [
    {
      about: 'config',
      state: warnings.length === 0 ? 'ok' : 'warning',
      found: `${built.catalogue.tools.size} tools on ${built.routes.length} routes, ${warnings.length} warnings`,
      ...(warnings.length === 0 ? {} : { remedy: `\`toolgate validate ${file}\` tells them` }),
    },
    ...diagnoseUpstreams(reached, as),
  ];
  // Where agents run there is no store, no key and no log of the gateway's.
  if (as === 'gateway') findings.push(...(await ofMachine(config, reached)));
  return findings;
}

async function ofMachine(
  config: Parameters<typeof diagnoseKeys>[0],
  reached: readonly Reached[],
): Promise<readonly Finding[]> {
  const now = Date.now();
  return [
    ...(await diagnoseKeys(config, now)),
    ...(await diagnoseCertificates(config, now)),
    ...(await diagnoseStore(config)),
    ...(await diagnoseAudit(config)),
    ...diagnoseClock(reached),
    ...(await diagnoseTracing(process.env)),
  ];
}

const MARKS = { ok: 'ok', warning: 'WARNING', fault: 'FAULT' } as const;

/** Findings as lines for people, what to do below each. */
export function renderFindings(findings: readonly Finding[]): string {
  const rows = findings.flatMap(({ about, state, found, remedy }) => [
    [MARKS[state], printable(about), printable(found)],
    ...(remedy === undefined ? [] : [['', '', `→ ${printable(remedy)}`]]),
  ]);
  return renderColumns(rows);
}
