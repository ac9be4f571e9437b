// biome-ignore-all lint/performance/noBarrelFile: an entry of the package is the one place for a list of exports.
// What `toolgate/client` gives: the one list of what the package promises to its users. Inside the project each file is
// imported itself.

export { HistoryFault } from '../../receipts/history.ts';
export { JsonFault } from '../../receipts/json-fault.ts';
export { KeyFault } from '../../receipts/keys.ts';
export { AnswerVerifier, type SentCall } from './answer-verifier.ts';
export { Check, type Checked, type Question } from './check.ts';
export { Client, type ClientOptions, type SessionOptions } from './client.ts';
export {
  BadAnswer,
  ClientError,
  GatewayProblem,
  GatewayUnreachable,
  NoSuchStep,
  NoTruthValue,
  UntrustedAnswer,
} from './errors.ts';
export { History, type VerifyHistoryOptions } from './history.ts';
export type { CallOptions, CallResult, ForwardOptions, Session } from './session.ts';
