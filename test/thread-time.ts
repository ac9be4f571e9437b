/**
 * Milliseconds of the processor that this thread has used: what bounds of work are told in, for on a machine that has
 * other things to do the clock on the wall says nothing.
 */
export function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
