import { Temporal } from 'temporal-polyfill';

/** What a limit counts over. `minute` and `hour` slide; `day`, `week` and `month` are periods of the calendar. */
export type Period = 'call' | 'run' | 'session' | 'minute' | 'hour' | 'day' | 'week' | 'month';
export type CalendarPeriod = 'day' | 'week' | 'month';
export type SlidingPeriod = 'minute' | 'hour';

/** Lengths of the sliding periods in milliseconds. */
export const SLIDING_MS: Readonly<Record<SlidingPeriod, number>> = { minute: 60_000, hour: 3_600_000 };

/** A calendar period: from `startMs`, which belongs to it, to `endMs`, which does not. */
interface CalendarWindow {
  /** First day of the period, `2026-11-29`: it names the period. */
  readonly label: string;
  readonly startMs: number;
  readonly endMs: number;
}

export type WindowOf = (per: CalendarPeriod, nowMs: number) => CalendarWindow;

export function isSliding(per: Period): per is SlidingPeriod {
  return per === 'minute' || per === 'hour';
}

export function isCalendar(per: Period): per is CalendarPeriod {
  return per === 'day' || per === 'week' || per === 'month';
}

/**
 * The calendar periods of a timezone (an IANA name). A day begins at its first moment there, which is not always
 * midnight, and lasts 23 or 25 hours where clocks change.
 */
export function makeWindows(timezone: string): WindowOf {
  // The window of now is asked for at every call and changes once a day; what is kept here changes no answer.
  const newest = new Map<CalendarPeriod, CalendarWindow>();
  return (per, nowMs) => {
    const known = newest.get(per);
    if (known !== undefined && known.startMs <= nowMs && nowMs < known.endMs) return known;
    const found = windowAt(per, nowMs, timezone);
    newest.set(per, found);
    return found;
  };
}

function windowAt(per: CalendarPeriod, nowMs: number, timezone: string): CalendarWindow {
  const today = Temporal.Instant.fromEpochMilliseconds(nowMs).toZonedDateTimeISO(timezone).toPlainDate();
  const first = firstDay(per, today);
  const startOf = (day: Temporal.PlainDate): number => day.toZonedDateTime(timezone).epochMilliseconds;
  return { label: first.toString(), startMs: startOf(first), endMs: startOf(nextFirstDay(per, first)) };
}

function firstDay(per: CalendarPeriod, day: Temporal.PlainDate): Temporal.PlainDate {
  if (per === 'day') return day;
  // ISO 8601: Monday is day 1 of a week.
  return per === 'week' ? day.subtract({ days: day.dayOfWeek - 1 }) : day.with({ day: 1 });
}

function nextFirstDay(per: CalendarPeriod, first: Temporal.PlainDate): Temporal.PlainDate {
  if (per === 'month') return first.add({ months: 1 });
  return first.add({ days: per === 'week' ? 7 : 1 });
}
