import type { CallRelay } from '../exchange.ts';

/**
 * What an MCP client hears of a call whose answer is filtered: how far it is, and nothing that its server puts into words
 * on the way (log messages, the text of progress), for nobody could tell which records those words show. The server can
 * ask the client nothing meanwhile, for the same reason.
 */
export function quietRelay(relay: CallRelay): CallRelay {
  const { progress: tell, ...rest } = relay;
  return {
    ...rest,
    quiet: true,
    notify: () => undefined,
    ask: () => Promise.reject(new Error('a call whose answer is filtered asks its client nothing')),
    ...(tell === undefined
      ? {}
      : { progress: ({ progress, total }) => tell(Object.fromEntries(numbersOf({ progress, total }))) }),
  };
}

function numbersOf(members: Readonly<Record<string, unknown>>): readonly (readonly [string, number])[] {
  return Object.entries(members).flatMap(([name, value]) =>
    typeof value === 'number' ? [[name, value] as const] : [],
  );
}
