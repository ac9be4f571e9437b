import { compileSchema } from '../../policy/schema/compile.ts';
import type { CatalogueDeps } from '../catalogue/build.ts';

/** What the making of a catalogue takes from `policy/`. */
export function catalogueDeps(): CatalogueDeps {
  return { compileSchema };
}
