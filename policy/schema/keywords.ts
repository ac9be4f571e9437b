import { isArray, isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { isSchema, SUBSCHEMA_KEYWORDS } from './dialect.ts';
import { isNumber } from './numbers.ts';

/** The types of JSON Schema. */
const TYPES: ReadonlySet<JsonValue> = new Set(['null', 'boolean', 'object', 'array', 'number', 'integer', 'string']);

type Test = (value: JsonValue) => boolean;

const isCount: Test = (value) => isNumber(value) && value >= 0 && Number.isSafeInteger(value);
const isNumeric: Test = (value) => isNumber(value);
const isStrings: Test = (value) => isArray(value) && value.every((item) => typeof item === 'string');
const isType: Test = (value) => typeof value === 'string' && TYPES.has(value);

/** Keywords that assert something of a value by themselves, with what their own value must look like. */
const ASSERTIONS: ReadonlyMap<string, readonly [Test, string]> = new Map<string, readonly [Test, string]>([
  ['type', [(value) => (isArray(value) ? value.length > 0 && value.every(isType) : isType(value)), 'a type or a list']],
  ['enum', [(value) => isArray(value), 'a list of values']],
  ['const', [() => true, 'a value']],
  ['multipleOf', [(value) => isNumber(value) && value > 0, 'a number above 0']],
  ['minimum', [isNumeric, 'a number']],
  ['maximum', [isNumeric, 'a number']],
  ['exclusiveMinimum', [isNumeric, 'a number']],
  ['exclusiveMaximum', [isNumeric, 'a number']],
  ['minLength', [isCount, 'a count']],
  ['maxLength', [isCount, 'a count']],
  ['pattern', [(value) => typeof value === 'string', 'a text']],
  ['format', [(value) => typeof value === 'string', 'a text']],
  ['minItems', [isCount, 'a count']],
  ['maxItems', [isCount, 'a count']],
  ['uniqueItems', [(value) => typeof value === 'boolean', 'true or false']],
  ['minContains', [isCount, 'a count']],
  ['maxContains', [isCount, 'a count']],
  ['minProperties', [isCount, 'a count']],
  ['maxProperties', [isCount, 'a count']],
  ['required', [isStrings, 'a list of names']],
  ['dependentRequired', [(value) => isObject(value) && Object.values(value).every(isStrings), 'lists of names']],
]);

/**
 * Keywords that ask nothing of a value, or that are read elsewhere. A keyword that is in no table is most likely a
 * misspelt constraint, and makes a schema partial.
 */
const ANNOTATIONS: ReadonlySet<string> = new Set([
  '$schema',
  '$id',
  'id',
  '$anchor',
  '$dynamicAnchor',
  '$recursiveAnchor',
  '$comment',
  '$vocabulary',
  '$ref',
  '$dynamicRef',
  '$recursiveRef',
  'title',
  'description',
  'default',
  'example',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
  'contentMediaType',
  'contentEncoding',
  'discriminator',
  'xml',
  'externalDocs',
  'nullable',
  'collectionFormat',
  'name',
  'in',
  'allowEmptyValue',
]);

/** True for a keyword that this project knows, whether or not it constrains anything. `x-` marks an extension. */
function isKnownKeyword(keyword: string): boolean {
  return (
    ASSERTIONS.has(keyword) || SUBSCHEMA_KEYWORDS.has(keyword) || ANNOTATIONS.has(keyword) || keyword.startsWith('x-')
  );
}

/** What is wrong with the value of a keyword that holds schemas, or undefined. */
export function faultOfSubschemas(keyword: string, value: JsonValue): string | undefined {
  const arrangement = SUBSCHEMA_KEYWORDS.get(keyword);
  if (arrangement === 'one' && !isSchema(value)) return `\`${keyword}\` must be a schema`;
  if (arrangement === 'list' && !(isArray(value) && value.length > 0 && value.every(isSchema))) {
    return `\`${keyword}\` must be a list of schemas`;
  }
  if (arrangement === 'map' && !(isObject(value) && Object.values(value).every(isSchema))) {
    return `\`${keyword}\` must be a map of schemas`;
  }
  return undefined;
}

/** The members of a schema object that assert something, those that are well-formed, and what is wrong with the others. */
export function readAssertions(schema: JsonObject): { assertions: Record<string, JsonValue>; faults: string[] } {
  const assertions: Record<string, JsonValue> = {};
  const faults: string[] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    const assertion = ASSERTIONS.get(keyword);
    if (assertion === undefined) {
      if (!isKnownKeyword(keyword)) faults.push(`the keyword \`${keyword}\` is not known`);
      continue;
    }
    const [test, wanted] = assertion;
    if (test(value)) assertions[keyword] = value;
    else faults.push(`\`${keyword}\` must be ${wanted}`);
  }
  return { assertions, faults };
}
