import { makeClaimOperations } from './sqlite-claims.ts';
import type { Ground, Handler } from './sqlite-ground.ts';
import { makeLimitOperations } from './sqlite-limits.ts';
import { makeRunOperations } from './sqlite-runs.ts';
import { makeSessionOperations } from './sqlite-sessions.ts';

/** Handlers of every operation by opcode, their statements prepared. */
export function makeHandlers(ground: Ground): readonly (Handler | undefined)[] {
  const handlers: (Handler | undefined)[] = [];
  const all = {
    ...makeSessionOperations(ground),
    ...makeClaimOperations(ground),
    ...makeLimitOperations(ground),
    ...makeRunOperations(ground),
  };
  for (const [code, handler] of Object.entries(all)) handlers[Number(code)] = handler;
  return handlers;
}
