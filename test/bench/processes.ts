import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';

/** A child process that prints the port it listens on. */
export interface Started {
  readonly port: number;
  readonly child: ChildProcess;
  /** CPU time that the process has used, all its threads, in microseconds; NaN where the machine does not tell. */
  cpuUs(): number;
  /** Memory that the process holds, in MiB; NaN where the machine does not tell. */
  memoryMiB(): number;
  /** From its start to its first line, in milliseconds. */
  readonly startMs: number;
  stop(): Promise<void>;
}

/** Starts a script of this folder, pinned to a core where the machine has `taskset` and more than one. */
export async function startScript(script: string, args: readonly string[], core: number): Promise<Started> {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const pinned = cpus().length > 1;
  const command = pinned ? 'taskset' : process.execPath;
  const all = pinned ? ['-c', String(core), process.execPath, file, ...args] : [file, ...args];
  const startedAt = performance.now();
  const child = spawn(command, all, { stdio: ['ignore', 'pipe', 'inherit'] });
  const port = await firstLine(child, script);
  return {
    port: Number(port),
    child,
    startMs: performance.now() - startedAt,
    cpuUs: () => cpuOf(child.pid),
    memoryMiB: () => memoryOf(child.pid),
    stop: () =>
      new Promise((resolve) => {
        child.once('exit', () => resolve());
        child.kill('SIGTERM');
      }),
  };
}

/** User and system time of a process from `/proc/PID/stat`, whose clock ticks are hundredths of a second. */
function cpuOf(pid: number | undefined): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10_000;
  } catch {
    return Number.NaN;
  }
}

/** The resident set of a process from `/proc/PID/status`. */
function memoryOf(pid: number | undefined): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/^VmRSS:\s*(\d+) kB$/m.exec(status)?.[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}

function firstLine(child: ChildProcess, script: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`${script} ended with ${code} before it listened`)));
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
      const end = text.indexOf('\n');
      if (end !== -1) resolve(text.slice(0, end));
    });
  });
}
