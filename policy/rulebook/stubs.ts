/**
 * The flows that the public Colang 2.x modules bring with them, by module. An import of one makes these names known;
 * what they do belongs to the conversation and runs no tool.
 */
const STUBS: Readonly<Record<string, readonly string[]>> = {
  core: [
    '_bot_say',
    '_user_said',
    '_user_said_something_unexpected',
    '_user_saying',
    'await_flow_by_name',
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

/** The flows of a bundled module, or undefined where no such module is bundled. */
export function stubFlows(module: string): readonly string[] | undefined {
  return Object.hasOwn(STUBS, module) ? STUBS[module] : undefined;
}

/** Every flow name of every bundled module: what an `@override` may replace. */
export function allStubFlows(): ReadonlySet<string> {
  return new Set(Object.values(STUBS).flat());
}
