/**
 * The flows that the public Colang 2.x modules bring with them, by module. An import of one makes these names known;
 * what they do belongs to the conversation and runs no tool.
 */
const STUBS: Readonly<Record<string, readonly string[]>> = {
  core: [
    'bot ask',
    'bot asked something',
    'bot clarified something',
    'bot clarify',
    'bot express',
    'bot expressed something',
    'bot inform',
    'bot informed something',
    'bot refuse to respond',
    'bot respond',
    'bot responded something',
    'bot said',
    'bot said something',
    'bot say',
    'bot started saying',
    'bot started saying something',
    'bot suggest',
    'bot suggested something',
    'user said',
    'user said something',
    'user said something unexpected',
    'user saying',
    'user saying something',
    'user started saying something',
    '_bot_say',
    '_user_said',
    '_user_said_something_unexpected',
    '_user_saying',
    'flow_failed',
    'it finished',
    'debugging helpers',
    'notification of colang errors',
    'notification of undefined flow start',
    'notification of unexpected user utterance',
    'observation of flow',
    'observation of flow failed',
    'observation of flow finished',
    'observation of flow start',
    'tracking bot talking state',
    'tracking user talking state',
    'wait indefinitely',
    'warning of colang errors',
    'warning of undefined flow start',
    'warning of unexpected user utterance',
  ],
  attention: [
    '_user_said',
    '_user_said_something_unexpected',
    '_user_saying',
    'attention checks',
    'tracking user attention',
  ],
  timing: ['repeating timer', 'wait'],
  llm: [
    'automating intent detection',
    'continuation on undefined flow',
    'continuation on unhandled user intent',
    'continuation on unhandled user utterance',
    'execute llm instruction',
    'generating user intent for unhandled user utterance',
    'llm continuation',
    'llm continue interaction',
    'llm generate interaction continuation flow',
    'logging marked bot intent flows',
    'logging marked user intent flows',
    'marking bot intent flows',
    'marking user intent flows',
    'polling llm request response',
    'tracking unhandled user intent state',
    'unhandled user intent',
  ],
  guardrails: ['run input rails', 'run output rails'],
  avatars: [
    'fail all bot actions',
    'finish all bot actions',
    'finish all scene actions',
    'handling bot talking interruption',
    'managing attentive posture',
    'managing bot postures',
    'managing listening posture',
    'managing talking posture',
    'managing thinking posture',
    'scene show choice',
    'scene show form',
    'scene show short information',
    'scene show textual information',
    'tracking visual choice selection state',
  ],
  passthrough: ['context free bot response generation on unhandled user intent', 'llm continuation'],
};

/** Of these flows, those that end once a person has said or chosen something, and are not named after a `user`. */
const WAITING: ReadonlySet<string> = new Set([
  '_user_said',
  '_user_said_something_unexpected',
  '_user_saying',
  'generating user intent for unhandled user utterance',
  'scene show choice',
  'scene show form',
  'unhandled user intent',
]);

/** The modules that a bundled module imports itself. */
const REQUIRES: Readonly<Record<string, readonly string[]>> = {
  llm: ['core', 'timing'],
  guardrails: ['core'],
  avatars: ['core', 'llm', 'timing'],
  passthrough: ['core', 'llm', 'timing'],
};

/** The flows that importing a bundled module brings in, or undefined where no such module is bundled. */
export function stubFlows(module: string): readonly string[] | undefined {
  if (!Object.hasOwn(STUBS, module)) return undefined;
  const required = Object.hasOwn(REQUIRES, module) ? (REQUIRES[module] ?? []) : [];
  return [module, ...required].flatMap((name) => STUBS[name] ?? []);
}

/** Whether a bundled flow waits for a person: a turn of theirs, where it is awaited. */
export function waitsForPerson(name: string): boolean {
  return WAITING.has(name);
}

/** Every flow name of every bundled module: what an `@override` may replace. */
export function allStubFlows(): ReadonlySet<string> {
  return new Set(Object.values(STUBS).flat());
}
