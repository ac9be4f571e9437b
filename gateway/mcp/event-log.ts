import { randomUUID } from 'node:crypto';
import type { EventStore, JSONRPCMessage } from '@modelcontextprotocol/server';

const MAX_EVENTS = 256;
const MAX_BYTES: number = 1 << 20;
/** Streams that ended whose events are still kept: the client may have missed the end. */
const MAX_ENDED = 8;

interface Event {
  readonly id: string;
  readonly stream: string;
  readonly message: JSONRPCMessage;
  readonly bytes: number;
}

/**
 * The newest events of a session, for a client that comes back with `Last-Event-ID`: of streams that go on, and of the
 * last few that ended. What is older is gone.
 */
export class EventLog implements EventStore {
  #events: Event[] = [];
  readonly #ended: string[] = [];
  #bytes = 0;

  storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    const id = randomUUID();
    const bytes = JSON.stringify(message).length;
    this.#events.push({ id, stream, message, bytes });
    this.#bytes += bytes;
    while (this.#events.length > MAX_EVENTS || (this.#bytes > MAX_BYTES && this.#events.length > 1)) {
      this.#bytes -= this.#events.shift()?.bytes ?? 0;
    }
    if ('result' in message || 'error' in message) this.#end(stream);
    return Promise.resolve(id);
  }

  /** A stream has its response: of those that ended before, the oldest goes. */
  #end(stream: string): void {
    this.#ended.push(stream);
    const oldest = this.#ended.length > MAX_ENDED ? this.#ended.shift() : undefined;
    if (oldest === undefined || oldest === stream) return;
    this.#events = this.#events.filter((event) => event.stream !== oldest);
    this.#bytes = this.#events.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  getStreamIdForEventId(id: string): Promise<string | undefined> {
    return Promise.resolve(this.#events.find((event) => event.id === id)?.stream);
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const at = this.#events.findIndex(({ id }) => id === lastEventId);
    const last = this.#events[at];
    if (last === undefined) throw new Error('the event is not kept any more');
    for (const event of this.#events.slice(at + 1)) {
      // A priming event has no message.
      if (event.stream === last.stream && 'jsonrpc' in event.message) await send(event.id, event.message);
    }
    return last.stream;
  }
}
