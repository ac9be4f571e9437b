// Default-ignorable characters (Unicode, UAX 44), all format characters, and the overlays that strike letters through:
// nor do controls: none of them changes which host a reader or a resolver sees.
const IGNORABLE = /[\p{Default_Ignorable_Code_Point}\p{Cf}]|[^\P{Cc}\t\n\r]|[\u0334-\u0338]|[\u20d0-\u20f0]/gu;
const LOOK_ALIKES = /[。．｡․·•∙⋅・･܁܂۔‧⸳ꓸ᛫˙⁄∕⧸╱∶ː꞉∖⧵⟍‐‑﹫]/g;
const PLAIN: ReadonlyMap<string, string> = new Map(
  [
    ['.', '。．｡․·•∙⋅・･܁܂۔‧⸳ꓸ᛫˙'],
    ['/', '⁄∕⧸╱'],
    [':', '∶ː꞉'],
    ['\\', '∖⧵⟍'],
    ['-', '‐‑'],
    ['@', '﹫'],
  ].flatMap(([plain = '', likes = '']) => [...likes].map((like): [string, string] => [like, plain])),
);

// Cyrillic and Greek letters that look Latin, for words that mix the scripts: `evil.соm` is read as `evil.com`.
const LATIN_LIKE: ReadonlyMap<string, string> = new Map(
  [...'аaеeоoрpсcуyхxіiјjѕsԁdһhԛqԝwтtмmкkнhвbοoαaνvρpιiεeτtυu'].reduce<[string, string][]>(
    (pairs, letter, index, all) => {
      if (index % 2 === 0) pairs.push([letter, all[index + 1] ?? letter]);
      return pairs;
    },
    [],
  ),
);
const MIXED_WORD = /[\p{L}\p{N}._-]+/gu;
const OTHER_SCRIPT = /[\u0370-\u03ff\u0400-\u052f]/;
const ONLY_ASCII = /^[\t\n\r\x20-\x7e]*$/;

/** True for printable ASCII, tabs and line breaks, where nothing below can change the text. */
export function isAscii(text: string): boolean {
  return ONLY_ASCII.test(text);
}

/**
 * The text as a resolver or a reader takes it: compatibility forms made plain (NFKC), ignorable characters gone, characters
 * that look like a dot, slash, colon, backslash or hyphen replaced. Text in ASCII comes back as it is.
 */
export function foldText(text: string): string {
  if (isAscii(text)) return text;
  // Before NFKC as well, which makes a space and a mark of some of them.
  const plain = withoutLookAlikes(text.replace(IGNORABLE, '')).normalize('NFKC').replace(IGNORABLE, '');
  return withoutLookAlikes(plain);
}

function withoutLookAlikes(text: string): string {
  return text.replace(LOOK_ALIKES, (like) => PLAIN.get(like) ?? like);
}

/** Words that mix Latin with Cyrillic or Greek, in Latin alone. A word of one script is left as it is. */
export function latinLookAlikes(text: string): string {
  if (!OTHER_SCRIPT.test(text)) return text;
  return text.replace(MIXED_WORD, (word) => {
    if (!OTHER_SCRIPT.test(word) || !/[A-Za-z]/.test(word)) return word;
    return Array.from(word, (letter) => LATIN_LIKE.get(letter.toLowerCase()) ?? letter).join('');
  });
}
