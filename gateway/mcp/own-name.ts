import type { Implementation } from '@modelcontextprotocol/client';

/** What the gateway calls itself to servers, and to clients of its endpoints. */
export const OWN_NAME: Implementation = { name: 'toolgate', version: '1' };
