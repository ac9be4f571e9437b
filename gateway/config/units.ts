const MS_PER_UNIT: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const BYTES_PER_UNIT: Readonly<Record<string, number>> = {
  B: 1,
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
};

/** Milliseconds of a duration such as `30s`. Throws a RangeError for anything else: the schema has let through durations alone. */
export function parseDurationMs(text: string): number {
  return parseAmount(text, MS_PER_UNIT);
}

/** Bytes of a size such as `1MiB`. Throws a RangeError for anything else: the schema has let through sizes alone. */
export function parseSizeBytes(text: string): number {
  return parseAmount(text, BYTES_PER_UNIT);
}

function parseAmount(text: string, units: Readonly<Record<string, number>>): number {
  const [, digits, unit] = /^([0-9]{1,9})([A-Za-z]+)$/.exec(text) ?? [];
  const scale = unit === undefined || !Object.hasOwn(units, unit) ? undefined : units[unit];
  if (digits === undefined || scale === undefined) throw new RangeError(`\`${text}\` is not a number with a unit`);
  return Number(digits) * scale;
}
