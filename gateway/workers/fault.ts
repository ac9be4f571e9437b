/** The workers of a gateway did not start, or did not end as they should. */
export class WorkersFault extends Error {
  readonly code = 'workers_failed';
}
