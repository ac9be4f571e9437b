import { Ajv2020 } from 'ajv/dist/2020.js';
import type { CompiledSchema } from '../../policy/tool.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';

const ajv = new Ajv2020({ allErrors: true, strict: false });

/** A schema compiler that is enough for configurations: plain objects, closed by what the schema itself says. */
export function compileSchema(schema: JsonObject): CompiledSchema {
  const validate = ajv.compile(schema);
  return {
    validate: (value) => {
      validate(value);
      return (validate.errors ?? []).map((error) => ({
        pointer:
          error.keyword === 'required'
            ? `${error.instancePath}/${error.params['missingProperty']}`
            : error.instancePath,
        rule: error.keyword,
        message: error.message ?? error.keyword,
      }));
    },
    partial: [],
    topLevel: Object.keys(propertiesOf(schema)),
    declares: (path) => {
      let node: JsonValue | undefined = schema;
      for (const part of path.split('.')) {
        const properties: JsonObject = propertiesOf(node);
        if (!Object.hasOwn(properties, part)) return false;
        node = properties[part];
      }
      return true;
    },
    schema,
  };
}

function propertiesOf(schema: JsonValue | undefined): JsonObject {
  if (schema === undefined || schema === null || typeof schema !== 'object' || Array.isArray(schema)) return {};
  const properties = (schema as JsonObject)['properties'];
  return properties === undefined ? {} : (properties as JsonObject);
}
