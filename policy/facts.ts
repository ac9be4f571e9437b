import { Big } from 'big.js';
import type { JsonObject, JsonValue } from '../receipts/json-value.ts';
import { isTruthy, readPath } from './rulebook/condition.ts';
import { isToolName } from './rulebook/message.ts';
import { quoted } from './rulebook/nearest.ts';

/** A literal that a fact compares with; a number keeps its text, since numbers compare as decimals. */
export type FactLiteral = string | boolean | null | { readonly number: string };

/** Where a fact comes from: a field of what a tool last answered. */
export interface FactSource {
  /** `server/tool` where it is read, as written where it is parsed. */
  readonly tool: string;
  readonly path: readonly string[];
  /** Left out: the field only has to be true, not 0, or not empty. */
  readonly equals?: FactLiteral;
}

/** A fact as the configuration gives it. */
export interface Fact extends FactSource {
  /** The argument that ties an answer to the call: only an answer about the same one counts. */
  readonly same?: string;
}

/** What a tool answered in this session, as the gateway saw it. */
export interface ToolAnswer {
  readonly tool: string;
  readonly arguments: JsonObject;
  readonly result: JsonObject;
  readonly step: number;
}

/** A fact that cannot be read. */
export class FactSourceError extends Error {
  readonly code = 'fact_source';
}

const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const WORDS: ReadonlyMap<string, boolean | null> = new Map([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['null', null],
  ['None', null],
]);

/**
 * Reads `tool.field`, `server/tool.field.inner`, or either with `== value`. A value is a number, `true`, `false`,
 * `null`, or a text, in quotes where it would read as one of the others.
 * @throws FactSourceError with what to write instead
 */
export function parseFactSource(text: string): FactSource {
  const equals = text.indexOf('==');
  const field = (equals < 0 ? text : text.slice(0, equals)).trim();
  if (/[=<>!]/.test(field)) {
    throw new FactSourceError(`${quoted(text)} cannot be read; only \`TOOL.FIELD\` and \`TOOL.FIELD == VALUE\` can`);
  }
  const slash = field.indexOf('/');
  const dot = field.indexOf('.', slash + 1);
  const tool = dot < 0 ? field : field.slice(0, dot);
  const path = dot < 0 ? [] : field.slice(dot + 1).split('.');
  if (!isToolName(tool) || path.length === 0 || path.some((name) => name === '' || /\s/.test(name))) {
    throw new FactSourceError(`${quoted(text)} names no field of a tool's answer; write \`TOOL.FIELD\``);
  }
  if (equals < 0) return { tool, path };
  return { tool, path, equals: parseLiteral(text.slice(equals + 2).trim(), text) };
}

function parseLiteral(value: string, whole: string): FactLiteral {
  if (value === '') throw new FactSourceError(`${quoted(whole)} compares with nothing; write a value after \`==\``);
  const quote = value[0];
  if (quote === '"' || quote === "'") {
    if (value.length < 2 || !value.endsWith(quote))
      throw new FactSourceError(`${quoted(whole)} has a text that is not closed`);
    return value.slice(1, -1);
  }
  if (/[=<>!"']/.test(value)) {
    throw new FactSourceError(`${quoted(whole)} compares with ${quoted(value)}; write it in quotes where it is a text`);
  }
  const word = WORDS.get(value);
  if (word !== undefined) return word;
  return NUMBER.test(value) ? { number: value } : value;
}

/**
 * Whether a fact holds at a call. The newest answer that counts decides, for good or ill; where none counts it is false.
 * @param fact with its tool as the answers name theirs
 * @param answers what tools answered in this session, newest first; those of tools that read outside are not among them
 * @param callArguments the arguments of the call that is checked
 */
export function readFact(fact: Fact, answers: readonly ToolAnswer[], callArguments: JsonObject): boolean {
  const bound = fact.same === undefined ? undefined : ownMember(callArguments, fact.same);
  if (fact.same !== undefined && bound === undefined) return false;
  for (const answer of answers) {
    if (answer.tool !== fact.tool) continue;
    if (fact.same !== undefined && bound !== undefined) {
      const about = ownMember(answer.arguments, fact.same) ?? ownMember(answer.result, fact.same);
      if (about === undefined || !sameValue(about, bound)) continue;
    }
    return holds(fact, answer.result);
  }
  return false;
}

function holds(fact: FactSource, result: JsonObject): boolean {
  const value = readPath(result, fact.path);
  if (value === undefined) return false;
  if (fact.equals === undefined) return isTruthy(value);
  if (fact.equals !== null && typeof fact.equals === 'object') return sameNumber(value, new Big(fact.equals.number));
  return value === fact.equals;
}

function ownMember(from: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(from, name) ? from[name] : undefined;
}

function sameNumber(value: JsonValue, number: Big): boolean {
  if (typeof value === 'bigint') return new Big(value.toString()).eq(number);
  return typeof value === 'number' && Number.isFinite(value) && new Big(String(value)).eq(number);
}

/** Whether two values are the same one: of one kind, numbers as decimals. Lists and maps name nothing, so never are. */
function sameValue(left: JsonValue, right: JsonValue): boolean {
  if (typeof left === 'number' || typeof left === 'bigint') {
    if (typeof right === 'bigint') return sameNumber(left, new Big(right.toString()));
    return typeof right === 'number' && Number.isFinite(right) && sameNumber(left, new Big(String(right)));
  }
  return left === right && typeof left !== 'object';
}
