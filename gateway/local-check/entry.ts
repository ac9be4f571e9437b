// biome-ignore-all lint/performance/noBarrelFile: an entry of the package is the one place for a list of exports.
// What `toolgate/check` gives; see docs/client.md.
export { Check, type Checked } from '../client/check.ts';
export { NoSuchStep, NoTruthValue } from '../client/errors.ts';
export { History } from '../client/history.ts';
export { ConfigFault, LocalChecker, type LocalCheckerOptions } from './local-checker.ts';
export type { Approval, LocalCallOptions, LocalSession } from './local-session.ts';
