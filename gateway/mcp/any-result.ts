import type { StandardSchemaV1Sync } from '@modelcontextprotocol/client';

/** Takes a result as it is: what a server answers is passed on, not judged. */
export const ANY_RESULT: StandardSchemaV1Sync<unknown, object> = {
  '~standard': {
    version: 1,
    vendor: 'toolgate',
    validate: (value) =>
      typeof value === 'object' && value !== null ? { value } : { issues: [{ message: 'it is no object' }] },
  },
};
