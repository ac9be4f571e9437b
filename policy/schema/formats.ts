import { fullFormats } from 'ajv-formats/dist/formats.js';
import { INTEGER_RANGES, isInteger, type JsonNumber } from './numbers.ts';
import { compilePattern } from './pattern.ts';

/** A format that is enforced: what it applies to and the check. */
export type Format =
  | { readonly type: 'string'; readonly validate: (text: string) => boolean }
  | { readonly type: 'number'; readonly validate: (value: JsonNumber) => boolean };

/**
 * Some of the formats' expressions are not linear, so none of them sees a longer text; no address, date or identifier is
 * longer (RFC 3986 sets no limit; servers refuse URIs beyond 8,000 octets, RFC 9110 4.1).
 */
const MAX_FORMATTED_LENGTH = 8000;

/** Formats of JSON Schema's own list that are enforced, by the definitions of ajv-formats. */
const BORROWED = [
  'date',
  'uri',
  'uri-reference',
  'uri-template',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'json-pointer',
  'json-pointer-uri-fragment',
  'relative-json-pointer',
] as const;

/** Formats that say how a value is shown or carried, and constrain nothing beyond the type beside them. */
const DESCRIPTIVE: readonly string[] = ['password', 'binary', 'float', 'double', 'unix-time', 'textarea', 'markdown'];

const isDate = borrowedCheck('date');
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const DECIMAL = /^[+-]?\d+(?:\.\d+)?$/;
const TIME = /^(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:z|([+-])(\d\d):(\d\d))$/i;

/** RFC 3339 appendix A: a unit may be left out at either end, not in the middle. */
const DURATION_TIME = 'T(?:\\d+S|\\d+M(?:\\d+S)?|\\d+H(?:\\d+M(?:\\d+S)?)?)';
const DURATION_DATE = '(?:\\d+D|\\d+M(?:\\d+D)?|\\d+Y(?:\\d+M(?:\\d+D)?)?)';
const DURATION = compilePattern(`^P(?:${DURATION_DATE}(?:${DURATION_TIME})?|${DURATION_TIME}|\\d+W)$`);

/** Every format that is enforced. A name that is in neither this table nor `isDescriptive` makes a schema partial. */
export const FORMATS: ReadonlyMap<string, Format> = new Map<string, Format>([
  ...BORROWED.map((name): [string, Format] => [name, { type: 'string', validate: bounded(borrowedCheck(name)) }]),
  ['time', { type: 'string', validate: isTime }],
  ['date-time', { type: 'string', validate: isDateTime }],
  ['duration', { type: 'string', validate: bounded((text) => DURATION.test(text)) }],
  ['uuid', { type: 'string', validate: (text) => UUID.test(text) }],
  // OpenAPI format registry: a decimal number of any precision, mostly written as a text.
  ['decimal', { type: 'string', validate: bounded((text) => DECIMAL.test(text)) }],
  ['byte', { type: 'string', validate: isBase64 }],
  ['regex', { type: 'string', validate: bounded(isPattern) }],
  ...[...INTEGER_RANGES].map(([name, [least, most]]): [string, Format] => [
    name,
    { type: 'number', validate: (value) => isInteger(value) && value >= least && value <= most },
  ]),
  ['uint', { type: 'number', validate: (value) => isInteger(value) && value >= 0 }],
]);

/** True for a format that asks nothing of the value. */
export function isDescriptive(format: string): boolean {
  return DESCRIPTIVE.includes(format);
}

function bounded(check: (text: string) => boolean): (text: string) => boolean {
  return (text) => text.length <= MAX_FORMATTED_LENGTH && check(text);
}

function borrowedCheck(name: (typeof BORROWED)[number]): (text: string) => boolean {
  const definition = fullFormats[name];
  if (definition instanceof RegExp) return (text) => definition.test(text);
  if (typeof definition === 'function') return (text) => definition(text);
  if (typeof definition === 'object' && 'validate' in definition) {
    const { validate } = definition;
    if (typeof validate === 'function') return (text) => validate(text as never) === true;
    if (validate instanceof RegExp) return (text) => validate.test(text);
  }
  throw new TypeError(`the format \`${name}\` has no definition`);
}

/** RFC 3339 `full-time`; a leap second only where the time is 23:59:60 in UTC. */
function isTime(text: string): boolean {
  const match = TIME.exec(text);
  if (match === null) return false;
  const [hour, minute, second] = [Number(match[1]), Number(match[2]), Number(match[3])];
  const [offsetHour, offsetMinute] = [Number(match[5] ?? 0), Number(match[6] ?? 0)];
  if (hour > 23 || minute > 59 || second > 60 || offsetHour > 23 || offsetMinute > 59) return false;
  if (second < 60) return true;
  const offset = (offsetHour * 60 + offsetMinute) * (match[4] === '-' ? -1 : 1);
  return (hour * 60 + minute - offset + 2880) % 1440 === 1439;
}

/** RFC 3339 `date-time`. */
function isDateTime(text: string): boolean {
  return (text[10] === 'T' || text[10] === 't') && isDate(text.slice(0, 10)) && isTime(text.slice(11));
}

function isPattern(text: string): boolean {
  try {
    compilePattern(text);
    return true;
  } catch {
    try {
      return new RegExp(text, 'u') instanceof RegExp;
    } catch {
      return false;
    }
  }
}

/** RFC 4648 section 4, with padding, in one pass: a body may hold a whole file. */
function isBase64(text: string): boolean {
  if (text.length % 4 !== 0) return false;
  let end = text.length;
  if (text.endsWith('==')) end -= 2;
  else if (text.endsWith('=')) end -= 1;
  for (let i = 0; i < end; i++) {
    const code = text.charCodeAt(i);
    const letter = (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
    if (!letter && !(code >= 48 && code <= 57) && code !== 43 && code !== 47) return false;
  }
  return true;
}
