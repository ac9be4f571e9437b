import type { Dialect } from '../../policy/schema/dialect.ts';
import { compileSchema } from '../../policy/schema/compile.ts';
import type { CatalogueDeps } from '../catalogue/build.ts';

const DIALECTS: ReadonlyMap<string, Dialect> = new Map(
  (['2020-12', '2019-09', 'draft-07', 'draft-04', 'openapi-3.0'] as const).map((name) => [name, name]),
);

/** What the making of a catalogue takes from `policy/`. */
export function catalogueDeps(): CatalogueDeps {
  return {
    compileSchema: (schema, options = {}) => {
      const dialect = options.dialect === undefined ? undefined : DIALECTS.get(options.dialect);
      return compileSchema(schema, dialect === undefined ? {} : { dialect });
    },
  };
}
