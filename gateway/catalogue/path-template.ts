/** A path template in segments; a parameter is a whole segment. */
export interface PathTemplate {
  /** As written, `/orders/{order_id}`. */
  readonly text: string;
  readonly segments: readonly PathSegment[];
}

type PathSegment = { readonly literal: string } | { readonly parameter: string };

const LITERAL = /^[A-Za-z0-9._~!$&'()*+,=:@-]+$/;
const PARAMETER = /^\{([A-Za-z_][A-Za-z0-9_.-]{0,127})\}$/;

/**
 * Reads a hand-listed call's path: `/`, then segments that are literal characters of RFC 3986 (without `;` and percent
 * signs, which a normalised path has none of) or one `{parameter}`. The answer is a text where it is none, saying why.
 */
export function parsePathTemplate(text: string): PathTemplate | string {
  if (!text.startsWith('/')) return `the path \`${text}\` must begin with \`/\``;
  if (text === '/') return { text, segments: [] };
  const segments: PathSegment[] = [];
  const seen = new Set<string>();
  for (const part of text.slice(1).split('/')) {
    const parameter = PARAMETER.exec(part)?.[1];
    if (parameter !== undefined) {
      if (seen.has(parameter)) return `the path \`${text}\` names \`{${parameter}}\` twice`;
      seen.add(parameter);
      segments.push({ parameter });
    } else if (part === '') {
      return `the path \`${text}\` has an empty segment; it must not end with \`/\` nor hold \`//\``;
    } else if (part === '.' || part === '..' || !LITERAL.test(part)) {
      return `the segment \`${part}\` of \`${text}\` is neither plain text nor one \`{parameter}\`; a query is made of arguments`;
    } else {
      segments.push({ literal: part });
    }
  }
  return { text, segments };
}

/** Names of the parameters, in order. */
export function parametersOf(template: PathTemplate): readonly string[] {
  return template.segments.flatMap((segment) => ('parameter' in segment ? [segment.parameter] : []));
}

/** Equal for templates that match the same paths. */
export function shapeOf(template: PathTemplate): string {
  return template.segments.map((segment) => ('literal' in segment ? `/${segment.literal}` : '/{}')).join('');
}
