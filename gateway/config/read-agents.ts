import type { Agent } from '../../policy/tool.ts';
import type { Config, Credential } from './config.ts';
import type { ConfigPath } from './problem.ts';
import type { RawConfig, RawPrivilege } from './raw.ts';
import type { Reading } from './reading.ts';

/** 0 for `low`, 100 for `high`, a number as it stands. */
export function privilegeOf(raw: RawPrivilege | undefined): number {
  if (raw === undefined || raw === 'low') return 0;
  return raw === 'high' ? 100 : raw;
}

type Who = Pick<Config, 'agents' | 'credentials' | 'approvers'>;

/** Agents, their credentials merged by key, and approvers. Faults: a key, a name or a person given twice. */
export function readAgents(raw: RawConfig, reading: Reading): Who {
  const agents = new Map<string, Agent>();
  const credentials = new Map<string, Credential>();
  for (const [name, agent] of Object.entries(raw.agents)) {
    agents.set(name, { name, privilege: privilegeOf(agent.privilege), defaults: agent.defaults ?? {} });
    for (const [index, given] of (agent.credentials ?? []).entries()) {
      const {
        key,
        host,
        name: caller,
      } = typeof given === 'string' ? { key: given, host: false, name: undefined } : given;
      const path = ['agents', name, 'credentials', index];
      addCredential(
        credentials,
        { digest: key, name: caller ?? defaultName(key), host: host ?? false, agents: new Set([name]) },
        path,
        reading,
      );
    }
  }
  checkCallerNames([...credentials.values()], raw, reading);
  const approvers = readApprovers(raw, credentials, reading);
  if (approvers.length === 0 && [...credentials.values()].some((credential) => !credential.host)) {
    reading.log.warning(
      'no_approver',
      ['agents'],
      'an agent’s confirmations wait for an approver and there is none; name one under `approvers`',
      'key',
    );
  }
  return { agents, credentials: [...credentials.values()], approvers };
}

/** Stays the same when other keys of the agent come and go, since sessions belong to the name. */
function defaultName(digest: string): string {
  return `key-${digest.slice('sha256:'.length, 'sha256:'.length + 16)}`;
}

function addCredential(all: Map<string, Credential>, credential: Credential, path: ConfigPath, reading: Reading): void {
  const known = all.get(credential.digest);
  if (known === undefined) {
    all.set(credential.digest, credential);
    return;
  }
  const [agent] = credential.agents;
  if (agent !== undefined && known.agents.has(agent)) {
    reading.log.error('duplicate_credential', path, `the credential stands twice at \`${agent}\`; take one out`);
  } else if (known.host !== credential.host || known.name !== credential.name) {
    reading.log.error(
      'duplicate_credential',
      path,
      `the credential stands at another agent with another \`host\` or \`name\`; one key is one caller`,
    );
  }
  all.set(credential.digest, { ...known, agents: new Set([...known.agents, ...credential.agents]) });
}

function checkCallerNames(credentials: readonly Credential[], raw: RawConfig, reading: Reading): void {
  const byName = new Map<string, Credential>();
  for (const credential of credentials) {
    const known = byName.get(credential.name);
    byName.set(credential.name, credential);
    if (known === undefined) continue;
    if (known.host === credential.host && sameMembers(known.agents, credential.agents)) continue;
    reading.log.error(
      'credential_name',
      placeOf(credential, raw),
      `two keys are named \`${credential.name}\` and differ in \`host\` or in their agents; keys of one name are one caller`,
    );
  }
}

function placeOf(credential: Credential, raw: RawConfig): ConfigPath {
  for (const [agent, { credentials = [] }] of Object.entries(raw.agents)) {
    const index = credentials.findIndex(
      (given) => (typeof given === 'string' ? given : given.key) === credential.digest,
    );
    if (index >= 0) return ['agents', agent, 'credentials', index];
  }
  return ['agents'];
}

function sameMembers(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((member) => b.has(member));
}

function readApprovers(
  raw: RawConfig,
  credentials: ReadonlyMap<string, Credential>,
  reading: Reading,
): Config['approvers'] {
  const names = new Set<string>();
  const digests = new Set<string>();
  return (raw.approvers ?? []).map((approver, index) => {
    if (names.has(approver.name)) {
      reading.log.error('duplicate_name', ['approvers', index, 'name'], `there are two approvers \`${approver.name}\``);
    }
    names.add(approver.name);
    for (const [at, digest] of approver.credentials.entries()) {
      const path = ['approvers', index, 'credentials', at];
      if (credentials.has(digest)) {
        reading.log.error(
          'approver_is_agent',
          path,
          `the credential of \`${approver.name}\` is an agent’s too: it could approve its own calls`,
        );
      }
      if (digests.has(digest)) {
        reading.log.error(
          'duplicate_credential',
          path,
          'the credential stands at another approver or twice at this one',
        );
      }
      digests.add(digest);
    }
    return { name: approver.name, digests: approver.credentials };
  });
}
