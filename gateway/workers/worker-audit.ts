import { parse } from 'node:path';

/**
 * The audit log of a worker: each process has a file and a chain of its own. The first worker's is the file that the
 * configuration names, which a gateway of one process would write; the second's is `audit-2.jsonl` for `audit.jsonl`.
 */
export function auditFileOf(file: string, worker: number): string {
  if (worker === 1) return file;
  const { dir, name, ext } = parse(file);
  return `${dir === '' ? '' : `${dir}/`}${name}-${worker}${ext}`;
}
