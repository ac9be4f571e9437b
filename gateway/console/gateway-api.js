/** What went wrong, for a person: what it is and what to do. `status` is the answer's, 0 where there was none. */
export class ConsoleFault extends Error {
  constructor(status, message) {
    super(message);
    this.name = 'ConsoleFault';
    this.status = status;
  }
}

/** What is said in the gateway's stead where its own sentence is for programs. */
const IN_WORDS = {
  'urn:toolgate:no_credential':
    'The gateway does not know this key. Check that you pasted all of it; a new one comes from whoever runs the gateway.',
  'urn:toolgate:wrong_role':
    "This key is an agent's or an app's, and only an approver's key decides. Whoever runs the gateway lists approvers under `approvers` in gateway.yaml.",
};

/** What to do, by the status of the answer; the gateway's own sentence stands before it. */
const WHAT_TO_DO = {
  404: 'It may be past its keeping. Look at the lists for what there is.',
  409: 'Look at how it stands now, below or in the lists.',
  503: 'Nothing was recorded. Try again in a moment.',
};

const PATIENCE_MS = 30_000;

/** The control API under one approver's key, which is kept in this object and nowhere else. */
export class GatewayApi {
  #key;
  #offsetMs = 0;

  /** Throws `ConsoleFault` where the text can be no key. */
  constructor(key) {
    const trimmed = key.trim();
    if (!/^[\x21-\x7e]{1,1000}$/.test(trimmed)) {
      throw new ConsoleFault(
        0,
        'That is no key: a key is one line of plain characters, without spaces. Paste it again.',
      );
    }
    this.#key = trimmed;
  }

  /** Now, by the gateway's clock: what expires, expires there. */
  now() {
    return Date.now() + this.#offsetMs;
  }

  get(path) {
    return this.#ask('GET', path);
  }

  post(path, body) {
    return this.#ask('POST', path, body);
  }

  async #ask(method, path, body) {
    const headers = { authorization: `Bearer ${this.#key}` };
    if (body !== undefined) headers['content-type'] = 'application/json';
    let response;
    let text;
    try {
      response = await fetch(path, {
        method,
        headers,
        cache: 'no-store',
        credentials: 'omit',
        redirect: 'error',
        signal: AbortSignal.timeout(PATIENCE_MS),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      text = await response.text();
    } catch {
      const unsure =
        method === 'GET' ? '' : ' It is not known whether your word arrived; look before you say it again.';
      throw new ConsoleFault(0, `The gateway does not answer. Check that it runs and that you reach it.${unsure}`);
    }
    this.#readClock(response);
    const answer = parse(text);
    if (!response.ok) throw new ConsoleFault(response.status, faultOf(response.status, answer));
    if (answer === undefined) {
      throw new ConsoleFault(response.status, 'What answered is not the gateway. Check the address of this page.');
    }
    return answer;
  }

  #readClock(response) {
    const date = Date.parse(response.headers.get('date') ?? '');
    // The header has whole seconds; a smaller difference is none.
    if (!Number.isNaN(date)) this.#offsetMs = Math.abs(date - Date.now()) < 2000 ? 0 : date - Date.now();
  }
}

function faultOf(status, answer) {
  const { type, title, detail } = typeof answer === 'object' && answer !== null ? answer : {};
  if (Object.hasOwn(IN_WORDS, type)) return IN_WORDS[type];
  const what = typeof title === 'string' ? title : `The gateway answered ${status}`;
  const why = typeof detail === 'string' ? `: ${detail}` : '';
  return `${what}${why}. ${WHAT_TO_DO[status] ?? 'Try again; if it stays, ask whoever runs the gateway.'}`;
}

/** JSON whose numbers keep the digits that they were sent with: a person approves those, not the nearest double. */
function parse(text) {
  try {
    return JSON.parse(text, (_name, value, context) => {
      const source = typeof value === 'number' ? context?.source : undefined;
      return source === undefined || source === String(value) ? value : JSON.rawJSON(source);
    });
  } catch {
    return undefined;
  }
}

/** This browser shows a number with the digits that it was sent with. */
export const KEEPS_DIGITS = typeof JSON.rawJSON === 'function';
