import { readFileSync } from 'node:fs';
import { fault } from '../http/problems.ts';
import { type ApiBindings, ApiProblem } from './api-context.ts';

/**
 * The page is made of nothing but its own files, opens no other origin, and stands in nobody's frame. Trusted Types with
 * no policy at all: a text can nowhere become markup, whatever a later change of the scripts forgets.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
};

const PAGE = 'index.html';

/** Every file of the page. */
const FILES = [
  PAGE,
  'console.css',
  'console.js',
  'confirmation-card.js',
  'confirmations.js',
  'element.js',
  'gateway-api.js',
  'outcomes.js',
  'runs.js',
  'shown-text.js',
  'shown-value.js',
  'views.js',
] as const;

/** Paths under `/console/` that the page's script makes a view of. */
const VIEWS: ReadonlySet<string> = new Set(['', 'decided', 'outcomes', 'runs']);

type Assets = ReadonlyMap<string, { readonly type: string; readonly body: Uint8Array<ArrayBuffer> }>;

/** Reads the page's files, which stand beside the code in the sources and in the built program. Throws where one is missing. */
export function readConsole(): Assets {
  return new Map(
    FILES.map((name) => {
      const type = TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? '';
      return [name, { type, body: new Uint8Array(readFileSync(new URL(`../console/${name}`, import.meta.url))) }];
    }),
  );
}

/**
 * `GET /console` and below: the approvers' page (docs/console.md). Anyone may load it, for it holds nothing: what it shows
 * it asks the control API for, with the key that the approver gives it.
 */
export function getConsole(env: ApiBindings, assets: Assets): Response {
  const rest = env.exchange.path.slice('/console'.length + 1);
  const asset = assets.get(isView(rest) ? PAGE : rest === PAGE ? '' : rest);
  if (!env.console || asset === undefined) {
    const why = env.console ? 'there is no such page; the console is at /console' : 'the console is turned off here';
    throw new ApiProblem(fault('no_route', why));
  }
  return new Response(asset.body, { headers: { ...HEADERS, 'content-type': asset.type } });
}

function isView(rest: string): boolean {
  if (VIEWS.has(rest)) return true;
  const [first, id, ...more] = rest.split('/');
  return first === 'confirmations' && id !== undefined && id !== '' && more.length === 0;
}
