import { renderProblems } from '../config/problem.ts';
import { lookAtServers } from '../mcp/look-at-servers.ts';
import { ConfigRefused, readWhole, type WholeConfig } from '../serve/whole-config.ts';
import { CliFault } from './command.ts';

/** A config that is good; else its faults go to standard error. Throws `CliFault`. */
export async function requireWhole(file: string): Promise<WholeConfig> {
  try {
    return await lookAtServers((provider) => readWhole(file, process.env, provider));
  } catch (error) {
    if (!(error instanceof ConfigRefused)) throw error;
    process.stderr.write(renderProblems(error.problems));
    throw new CliFault(1, `\`${file}\` has faults; \`toolgate validate ${file}\` tells them`);
  }
}
