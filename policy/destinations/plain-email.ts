import type { JsonValue } from '../../receipts/json-value.ts';
import { hasHostSuffix } from './hosts.ts';

// RFC 5322 dot-atoms without `%`, `!`, `|`, `/` and the like, which relays and shells have given a meaning of their own;
// letters of any script (RFC 6531).
const LOCAL = /^[\p{L}\p{N}_+'=~-]+(?:\.[\p{L}\p{N}_+'=~-]+)*$/u;
const LABEL = /^[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}-]*[\p{L}\p{M}\p{N}])?$/u;
const LONGEST = 254;
const LONGEST_LOCAL = 64;
const LONGEST_LABEL = 63;

/**
 * True where an argument's value is exactly one plain e-mail address and nothing else: no display name, brackets, comment,
 * quotes, list, white space, `mailto:`, and no character that folds into another. What `subject_argument` may hold.
 */
export function isPlainEmail(value: JsonValue): value is string {
  if (typeof value !== 'string' || value.length < 6 || value.length > LONGEST) return false;
  const sign = value.indexOf('@');
  if (sign < 1 || sign > LONGEST_LOCAL || sign !== value.lastIndexOf('@')) return false;
  if (value.normalize('NFKC') !== value.normalize('NFC')) return false;
  const labels = value.slice(sign + 1).split('.');
  return (
    LOCAL.test(value.slice(0, sign)) &&
    labels.length > 1 &&
    labels.every((label) => label.length <= LONGEST_LABEL && LABEL.test(label)) &&
    (hasHostSuffix(labels) || /^\p{L}{2,}$/u.test(labels.at(-1) ?? ''))
  );
}
