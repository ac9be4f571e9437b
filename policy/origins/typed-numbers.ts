import Big from 'big.js';

/** The languages whose way of writing numbers is known. */
export type Language = 'en' | 'pt-BR';

// A sign may stand before or after the currency; a group of thousands has three digits, and a number beginning with a
// zero is an id (`007`), not an amount.
const WHOLE: Readonly<Record<Language, RegExp>> = {
  en: /^(?:0|[1-9][0-9]*|[1-9][0-9]{0,2}(?:,[0-9]{3})+)?(?:\.[0-9]+)?$/,
  'pt-BR': /^(?:0|[1-9][0-9]*|[1-9][0-9]{0,2}(?:\.[0-9]{3})+)?(?:,[0-9]+)?$/,
};
const GROUPS: Readonly<Record<Language, RegExp>> = { en: /,/g, 'pt-BR': /\./g };
const LONGEST = 400;

function canonical(digits: string, negative: boolean): string {
  const [whole = '', fraction = ''] = digits.split('.');
  let end = fraction.length;
  while (end > 0 && fraction[end - 1] === '0') end -= 1;
  const head = whole === '' ? '0' : whole;
  if (end === 0) return negative && head !== '0' ? `-${head}` : head;
  return `${negative ? '-' : ''}${head}.${fraction.slice(0, end)}`;
}

/**
 * Reads one token as a number of the language (`1,234.56` in English, `1.234,56` in Brazilian Portuguese) and gives its
 * shortest decimal text (`1234.56`), or null where it is not exactly one well-formed number.
 */
export function readNumber(token: string, language: Language): string | null {
  if (token.length > LONGEST) return null;
  const sign = token[0];
  const negative = sign === '-' || sign === '−';
  const unsigned = negative || sign === '+' ? token.slice(1) : token;
  if (unsigned === '' || !WHOLE[language].test(unsigned)) return null;
  const digits = unsigned.replace(GROUPS[language], '');
  return canonical(language === 'en' ? digits : digits.replace(',', '.'), negative);
}

/** The shortest decimal text of a JSON number: `40` for 40.0, every digit of a `bigint`; null for what JSON cannot hold. */
export function decimalText(value: number | bigint): string | null {
  if (typeof value === 'bigint') return value.toString();
  if (!Number.isFinite(value)) return null;
  if (Number.isInteger(value) && Math.abs(value) < 1e21) return value === 0 ? '0' : BigInt(value).toString();
  const big = new Big(value).toFixed();
  return big.startsWith('-') ? canonical(big.slice(1), true) : canonical(big, false);
}
