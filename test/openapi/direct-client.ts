import { request } from 'node:http';

/** A request as a client of the backend writes it, by the rules of OpenAPI 3.1 and without any of the gateway's code. */
export interface DirectRequest {
  readonly method: string;
  /** Below the server's URL. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string;
}

/** One call: as arguments of a tool, and as the request that a direct client sends. */
export interface Case {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly request: DirectRequest;
}

/** Repeatable numbers: a linear congruential generator (Numerical Recipes). */
class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  under(limit: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * limit);
  }

  integer(): number {
    return this.under(2_000) - 1_000;
  }

  text(): string {
    const letters = ['a', 'Z', '0', ' ', 'ã', '&', '=', '+', '?', '#', "'", '(', '!', '*', '~', ':', '@', '日'];
    return `t${Array.from({ length: 1 + this.under(6) }, () => letters[this.under(letters.length)]).join('')}`;
  }

  some<T>(make: () => T): T[] {
    return Array.from({ length: 1 + this.under(3) }, make);
  }
}

/** RFC 3986: everything but unreserved characters. */
function enc(value: string | number | boolean): string {
  return encodeURIComponent(value).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

const json = { 'content-type': 'application/json' };
const form = { 'content-type': 'application/x-www-form-urlencoded' };

/** JSON with its members in order, as every part of these cases is one level deep. */
function sorted(value: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))));
}

type Maker = (dice: Dice) => Case;

const pathStyles: readonly Maker[] = [
  (dice) => {
    const [one, list, object] = [
      dice.integer(),
      dice.some(() => dice.text()),
      { x: dice.integer(), y: dice.integer() },
    ];
    const target = `/simple/${one}/${list.map(enc).join(',')}/x,${object.x},y,${object.y}`;
    return { tool: 'simple', args: { one, list, object }, request: { method: 'GET', target } };
  },
  (dice) => {
    const object = { x: dice.integer(), y: dice.integer() };
    const target = `/simple-exploded/x=${object.x},y=${object.y}`;
    return { tool: 'simpleExploded', args: { object }, request: { method: 'GET', target } };
  },
  (dice) => {
    const [one, list] = [dice.text(), dice.some(() => dice.under(90))];
    const object = { x: dice.under(90), y: dice.under(90) };
    const target = `/label/.${enc(one)}/.${list.join('.')}/.x=${object.x}.y=${object.y}`;
    return { tool: 'label', args: { one, list, object }, request: { method: 'GET', target } };
  },
  (dice) => {
    const [one, list] = [dice.text(), dice.some(() => dice.integer())];
    const object = { x: dice.integer(), y: dice.integer() };
    const items = list.map((item) => `;list=${item}`).join('');
    const target = `/matrix/;one=${enc(one)}/${items}/;object=x,${object.x},y,${object.y}`;
    return { tool: 'matrix', args: { one, list, object }, request: { method: 'GET', target } };
  },
];

const otherStyles: readonly Maker[] = [
  (dice) => {
    const args = {
      text: dice.text(),
      flag: dice.under(2) === 0,
      number: dice.integer() / 8,
      id: dice.integer(),
      list: dice.some(() => dice.integer()),
      joined: dice.some(() => dice.text()),
      spaced: dice.some(() => `s${dice.under(99)}`),
      piped: dice.some(() => `p${dice.under(99)}`),
      deep: { x: dice.integer(), y: dice.integer() },
      from: dice.text(),
      filter: { x: dice.integer(), y: dice.integer() },
    };
    const { from, ...rest } = args;
    const pairs = [
      `text=${enc(args.text)}`,
      `flag=${args.flag}`,
      `number=${args.number}`,
      `id=${args.id}`,
      ...args.list.map((item) => `list=${item}`),
      `joined=${args.joined.map(enc).join(',')}`,
      `spaced=${args.spaced.join('%20')}`,
      `piped=${args.piped.join('%7C')}`,
      `deep%5Bx%5D=${args.deep.x}`,
      `deep%5By%5D=${args.deep.y}`,
      `from=${enc(from)}`,
      `filter=${enc(JSON.stringify(args.filter))}`,
    ];
    const request = { method: 'GET', target: `/query?${pairs.join('&')}` };
    return { tool: 'query', args: { ...rest, spread: { from } }, request };
  },
  (dice) => {
    const trace = `trace ${dice.under(99)}`;
    const [list, sizes] = [dice.some(() => dice.integer()), dice.some(() => dice.integer())];
    const point = { x: dice.integer(), y: dice.integer() };
    const theme = dice.text();
    const headers = {
      'x-trace': trace,
      'x-list': list.join(','),
      'x-point': `x=${point.x},y=${point.y}`,
      cookie: `theme=${enc(theme)}; sizes=${sizes.join(',')}`,
    };
    const args = { 'X-Trace': trace, 'X-List': list, 'X-Point': point, theme, sizes };
    return { tool: 'headers', args, request: { method: 'GET', target: '/headers', headers } };
  },
  (dice) => {
    const id = dice.text();
    const body = { name: dice.text(), price: 1 + dice.under(99) / 4, tags: [`a${dice.under(9)}`, dice.text()] };
    const request = { method: 'PUT', target: `/items/${enc(id)}`, headers: json, body: sorted(body) };
    return { tool: 'putItem', args: { id, ...body }, request };
  },
  (dice) => {
    const id = dice.text();
    const body = dice.under(2) === 0 ? { name: dice.text() } : { price: dice.integer() };
    const headers = { 'content-type': 'application/merge-patch+json' };
    const request = { method: 'PATCH', target: `/items/${enc(id)}`, headers, body: sorted(body) };
    return { tool: 'patchItem', args: { id, ...body }, request };
  },
  (dice) => {
    const [id, body] = [dice.text(), { id: dice.text(), note: dice.text() }];
    const request = { method: 'POST', target: `/items/${enc(id)}`, headers: json, body: sorted(body) };
    return { tool: 'clashItem', args: { id, body }, request };
  },
  (dice) => {
    const body = dice.some(() => dice.integer());
    const request = { method: 'POST', target: '/list', headers: json, body: JSON.stringify(body) };
    return { tool: 'postList', args: { body }, request };
  },
];

const forms: readonly Maker[] = [
  (dice) => {
    const args = {
      name: dice.text(),
      count: dice.integer(),
      tags: dice.some(() => dice.text()),
      point: { x: dice.integer(), y: dice.integer() },
      lines: [
        { sku: dice.text(), n: dice.integer() },
        { sku: dice.text(), n: dice.integer() },
      ],
      meta: { colour: dice.text() },
      data: { a: dice.under(2) === 0 },
    };
    const pairs = [
      `name=${enc(args.name)}`,
      `count=${args.count}`,
      ...args.tags.map((tag) => `tags=${enc(tag)}`),
      `point%5Bx%5D=${args.point.x}&point%5By%5D=${args.point.y}`,
      ...args.lines.map(({ sku, n }, i) => `lines%5B${i}%5D%5Bsku%5D=${enc(sku)}&lines%5B${i}%5D%5Bn%5D=${n}`),
      `meta%5Bcolour%5D=${enc(args.meta.colour)}`,
      `data=${enc(JSON.stringify(args.data))}`,
    ];
    return { tool: 'form', args, request: { method: 'POST', target: '/form', headers: form, body: pairs.join('&') } };
  },
  (dice) => {
    const args = {
      name: dice.text(),
      count: dice.integer(),
      tags: dice.some(() => dice.text()),
      point: { x: dice.integer(), y: dice.integer() },
    };
    const part = (name: string, text: string, type = ''): string =>
      `--cut\r\nContent-Disposition: form-data; name="${name}"\r\n${type}\r\n${text}\r\n`;
    const body = [
      part('name', args.name),
      part('count', String(args.count)),
      ...args.tags.map((tag) => part('tags', tag)),
      part('point', JSON.stringify(args.point), 'Content-Type: application/json\r\n'),
      '--cut--\r\n',
    ];
    const headers = { 'content-type': 'multipart/form-data; boundary=cut' };
    return { tool: 'multipart', args, request: { method: 'POST', target: '/multipart', headers, body: body.join('') } };
  },
];

/** So many calls, every operation in turn, with values that differ each time. */
export function makeCases(count: number, seed: number): readonly Case[] {
  const dice = new Dice(seed);
  const makers = [...pathStyles, ...otherStyles, ...forms];
  return Array.from({ length: count }, (_, at) => {
    const maker = makers[at % makers.length];
    if (maker === undefined) throw new RangeError('no maker');
    return maker(dice);
  });
}

/** Sends a request as it is written: no path is tidied, no header added but those that HTTP needs. */
export function sendDirect(
  base: string,
  { method, target, headers = {}, body }: DirectRequest,
  more: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly text: string }> {
  const { hostname, port, pathname } = new URL(base);
  const prefix = pathname === '/' ? '' : pathname;
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  return new Promise((resolve, reject) => {
    const sent = request(
      { hostname, port, method, path: `${prefix}${target}`, headers: { ...headers, ...length, ...more } },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (piece: string) => {
          text += piece;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}
