const WORD = /^[\p{L}\p{M}]+(?:['.-][\p{L}\p{M}]+)*$/u;
const EMAIL = /^[\p{L}\p{M}\p{N}._+-]+@[\p{L}\p{M}\p{N}-]+(?:\.[\p{L}\p{M}\p{N}-]+)+$/u;
const MARKS = /\p{M}+/gu;
const NOT_ASCII = /[^\p{ASCII}]/u;

/** Case is what a person leaves to the keyboard only in `word`, `Word` and `WORD`: in `aBc` it may be an id's. */
function hasOrdinaryCase(token: string): boolean {
  const lower = token.toLowerCase();
  if (token === lower || token === token.toUpperCase()) return true;
  return token.slice(1) === lower.slice(1);
}

/** `US`, `DE`, `NO` and `AND` name countries where `us`, `de`, `no` and `and` do not. */
function isShortCode(token: string): boolean {
  return token.length <= 3 && token !== token.toLowerCase() && token === token.toUpperCase();
}

/**
 * What two tokens share where they count as the same. Words of letters and e-mail addresses: the case left out. Everything
 * with a digit in it, words of mixed case and short ones in capitals may be an id or a code: exactly as written.
 */
export function tokenKey(token: string): string {
  if (EMAIL.test(token) || (WORD.test(token) && hasOrdinaryCase(token) && !isShortCode(token)))
    return token.toLowerCase();
  return token;
}

/** A key without its accents (`joão` as `joao`), for words of letters; other keys as they are. */
export function withoutAccents(key: string): string {
  if (!NOT_ASCII.test(key) || !WORD.test(key)) return key;
  return key.normalize('NFD').replace(MARKS, '').normalize('NFC');
}
