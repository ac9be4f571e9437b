/** Times as lines carry them: RFC 3339 in UTC with milliseconds. Lines of one millisecond share one text. */
export function createClock(nowMs: () => number): () => string {
  let lastMs = Number.NaN;
  let text = '';
  return () => {
    const now = nowMs();
    if (now !== lastMs) {
      lastMs = now;
      text = new Date(now).toISOString();
    }
    return text;
  };
}
