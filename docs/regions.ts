/** A part of a page that is made from code, between `<!-- generated:NAME -->` and `<!-- /generated -->`. */
const OPEN = /^<!-- generated:([a-z]+) -->$/;
const CLOSE = '<!-- /generated -->';

/** Makes the parts of pages, by name. */
export type Generators = ReadonlyMap<string, () => string>;

/** A page whose marks do not fit together. */
export class RegionFault extends Error {
  readonly code = 'generated_region';
}

/**
 * The page with every generated part made anew; what stands outside the marks is kept as it is. Marks stand alone on
 * their lines. Throws {@link RegionFault}, naming the line, for a part that nothing makes, one that does not end, and an end
 * without a start.
 */
export function fillRegions(page: string, generators: Generators): string {
  const filled: string[] = [];
  let opened: { readonly name: string; readonly line: number } | undefined;
  for (const [index, line] of page.split('\n').entries()) {
    const name = OPEN.exec(line)?.[1];
    if (opened !== undefined) {
      if (name !== undefined)
        throw new RegionFault(`line ${opened.line}: \`${opened.name}\` does not end before the next`);
      if (line === CLOSE) {
        filled.push(line);
        opened = undefined;
      }
      continue;
    }
    if (line === CLOSE) throw new RegionFault(`line ${index + 1}: no generated part begins before this end`);
    filled.push(line);
    if (name === undefined) continue;
    const generate = generators.get(name);
    if (generate === undefined) throw new RegionFault(`line ${index + 1}: nothing makes a part named \`${name}\``);
    filled.push('', generate().trim(), '');
    opened = { name, line: index + 1 };
  }
  if (opened !== undefined) throw new RegionFault(`line ${opened.line}: \`${opened.name}\` does not end`);
  return filled.join('\n');
}

/** Names of the generated parts of a page, in order. */
export function regionsOf(page: string): readonly string[] {
  return page.split('\n').flatMap((line) => OPEN.exec(line)?.[1] ?? []);
}
