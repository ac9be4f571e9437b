/** Where a test may end the process, to see that what is stored then ends right. */
const FAULT_POINTS = [
  'after-claim',
  'after-sending',
  'after-answer',
  'after-outcome',
  'marking-run-failed',
  'after-undo-sent',
] as const;

export type FaultPoint = (typeof FAULT_POINTS)[number];

/** The environment variable that arms one: `TOOLGATE_FAULT=after-claim`, or `after-claim:3` for the third time it is met. */
const FAULT_VARIABLE = 'TOOLGATE_FAULT';

/** A gateway for production was told to end itself somewhere. */
class FaultPointRefused extends Error {
  readonly code = 'fault_point_refused';
}

/** Built code has lost its types, and its `.ts`: whoever runs that is no test of this repository. */
const IS_SOURCE = import.meta.filename.endsWith('.ts');

interface Armed {
  readonly point: string;
  times: number;
}

let armed: Armed | undefined = IS_SOURCE ? parseFault(process.env[FAULT_VARIABLE]) : undefined;

function parseFault(text: string | undefined): Armed | undefined {
  if (text === undefined || text === '') return undefined;
  const [point = '', times = '1'] = text.split(':');
  return { point, times: Number(times) };
}

/**
 * Throws `FaultPointRefused` where a fault point is armed and may not be: in a built gateway, with `NODE_ENV=production`,
 * or one that there is not.
 */
export function refuseFaultPoints(env: Readonly<Record<string, string | undefined>>): void {
  const text = env[FAULT_VARIABLE];
  if (text === undefined || text === '') return;
  if (!IS_SOURCE || env['NODE_ENV'] === 'production') {
    const what = `${FAULT_VARIABLE} is set, which makes the gateway kill itself in the middle of a call`;
    throw new FaultPointRefused(`${what}; it is for tests alone: take it out of the environment`);
  }
  const point = text.split(':')[0];
  if (FAULT_POINTS.some((known) => known === point)) return;
  throw new FaultPointRefused(
    `${FAULT_VARIABLE} names no fault point: \`${text}\`; there are ${FAULT_POINTS.join(', ')}`,
  );
}

/** Arms a fault point while the process runs, as the variable does at its start. Throws `FaultPointRefused` likewise. */
export function armFaultPoint(text: string): void {
  refuseFaultPoints({ ...process.env, [FAULT_VARIABLE]: text });
  armed = parseFault(text);
}

/** Ends the process here as a power cut would, where a test armed this point. Does nothing in production. */
export function faultPoint(point: FaultPoint): void {
  if (armed === undefined || armed.point !== point) return;
  armed.times -= 1;
  if (armed.times === 0) process.kill(process.pid, 'SIGKILL');
}
