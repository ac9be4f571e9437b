/** What something that was thrown says, for a sentence or a log: an error's message, anything else as text. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
