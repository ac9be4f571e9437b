import { Temporal } from 'temporal-polyfill';

/** A point in time, or a day of the calendar. The two are never compared with each other: that would take a guess. */
export type DateValue =
  | { readonly kind: 'instant'; readonly nanoseconds: bigint }
  | { readonly kind: 'date'; readonly day: string };

// RFC 3339 section 5.6, with at most nanoseconds. The offset is not optional: a time of no zone is no instant.
const INSTANT = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:[0-5]\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})$/;
const DAY = /^\d{4}-\d{2}-\d{2}$/;
/** The longest text that either pattern takes. */
const MAX_LENGTH = 35;

/** A text as a date or an instant; `undefined` where it is neither, or no day of the calendar. */
export function parseDate(text: string): DateValue | undefined {
  if (text.length < 10 || text.length > MAX_LENGTH || text.charCodeAt(4) !== 0x2d) return undefined;
  try {
    if (DAY.test(text)) {
      Temporal.PlainDate.from(text, { overflow: 'reject' });
      return { kind: 'date', day: text };
    }
    if (!INSTANT.test(text)) return undefined;
    return { kind: 'instant', nanoseconds: Temporal.Instant.from(text).epochNanoseconds };
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Below 0, 0 or above 0 as `a` is before, at or after `b`; `undefined` where one is a day and the other an instant. */
export function compareDates(a: DateValue, b: DateValue): number | undefined {
  if (a.kind === 'instant' && b.kind === 'instant') {
    return a.nanoseconds < b.nanoseconds ? -1 : a.nanoseconds > b.nanoseconds ? 1 : 0;
  }
  // Days of four-digit years stand in the order of their texts.
  if (a.kind === 'date' && b.kind === 'date') return a.day < b.day ? -1 : a.day > b.day ? 1 : 0;
  return undefined;
}
