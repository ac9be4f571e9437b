/** What a bot message means for the call: it refuses, it asks the person, or it only says something. */
export type MessageRole = 'refuse' | 'ask' | 'tell';

const REFUSING: ReadonlySet<string> = new Set(['deny', 'reject', 'decline', 'cannot', "can't"]);

/**
 * The role of a message by its name (what follows `bot`) and its texts. A first word that asks wins over a refusing
 * word further on, which wins over a question mark.
 */
export function messageRole(name: string, texts: readonly string[]): MessageRole {
  // Word processors turn an apostrophe.
  const words = name.toLowerCase().replaceAll('\u2019', "'").split(/\s+/);
  const first = words[0] ?? '';
  if (first.startsWith('ask') || first.startsWith('confirm')) return 'ask';
  if (words.some((word) => word.startsWith('refuse') || REFUSING.has(word))) return 'refuse';
  return texts.some(isQuestion) ? 'ask' : 'tell';
}

/** Whether a text ends in a question mark: of Latin, Chinese and Japanese, Arabic, Greek or Armenian writing. */
export function isQuestion(text: string): boolean {
  return /[?\uFF1F\u061F\u037E\u055E]\s*$/.test(text);
}

const TOOL_NAME = /^[\p{L}\p{N}_][\p{L}\p{N}_.\-/]*$/u;

/** Whether a text can name a tool, bare or as `server/tool`. */
export function isToolName(text: string): boolean {
  return text.length <= 256 && TOOL_NAME.test(text);
}

/** Actions of a conversation rather than of a tool: what the bot says and shows, what the person does, timers. */
const CONVERSATION =
  /^(?:(?:Utterance|Gesture|Posture|Presence|Expression|Attention|Timer)(?:User|Bot)?|Visual\w*)Action$/;

/** The tool that an action of Colang 2.x names (`RefundOrderAction` is `refund_order`), or undefined for none. */
export function actionTool(action: string): string | undefined {
  if (CONVERSATION.test(action) || !isActionName(action)) return undefined;
  const name = action.slice(0, -'Action'.length);
  return name
    .replaceAll(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1_$2')
    .replaceAll(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1_$2')
    .toLowerCase();
}

/** Whether a 2.x name is that of an action. */
export function isActionName(name: string): boolean {
  return /^\p{Lu}[\p{L}\p{N}_]*Action$/u.test(name);
}
