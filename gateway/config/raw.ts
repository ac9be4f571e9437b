import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';

/**
 * A configuration as it is written, after gateway.schema.json let it through. Each type mirrors one `$defs` entry of
 * the schema, which says what the words mean.
 */
export interface RawConfig {
  readonly listen?: string | RawListen;
  readonly tenant?: string;
  readonly audience?: string;
  readonly language?: 'en' | 'pt-BR';
  readonly timezone?: string;
  readonly taint_policy?: 'confirm' | 'refuse';
  readonly keys?: RawKeys;
  readonly store?: string | RawStore;
  readonly audit?: { readonly file?: string; readonly values?: boolean; readonly max_size?: string };
  readonly confirmations?: {
    readonly mode?: 'returned' | 'held';
    readonly ttl?: string;
    readonly point?: 'exact' | 'until_write';
  };
  readonly sessions?: { readonly carry?: string; readonly max?: number };
  readonly runs?: {
    readonly on_refuse?: 'undo' | 'leave';
    readonly on_failure?: 'undo' | 'leave';
    readonly idle?: string;
  };
  readonly receipts?: { readonly max_age?: string; readonly enforce?: readonly ReceiptCheck[] };
  readonly agents: Readonly<Record<string, RawAgent>>;
  readonly approvers?: readonly { readonly name: string; readonly credentials: readonly string[] }[];
  readonly routes: readonly RawRoute[];
  readonly rulebook?: string | readonly string[];
  readonly facts?: Readonly<Record<string, RawFact>>;
  readonly licence?:
    | string
    | { readonly file: string; readonly public_key?: string; readonly lapsed?: 'writes' | 'refuse' };
  readonly trusted_proxies?: readonly string[];
  readonly workers?: number;
  readonly console?: boolean | { readonly url?: string };
  readonly retry?: RawRetry;
  readonly idempotency?: { readonly keep?: string; readonly required?: boolean };
}

export type ReceiptCheck = 'schema' | 'destination' | 'limits';

interface RawListen {
  readonly host?: string;
  readonly port?: number;
  readonly tls?: { readonly cert: string; readonly key: string; readonly client_ca?: string };
}

interface RawKeys {
  readonly signing?: string;
  readonly id?: string;
  readonly previous?: readonly { readonly public_key: string; readonly not_after: string }[];
  readonly issuers?: readonly RawIssuer[];
}

export interface RawIssuer {
  readonly id: string;
  readonly public_key: string;
  readonly agents?: readonly string[];
  readonly tools?: readonly string[];
  readonly not_before?: string;
  readonly not_after?: string;
  readonly revoked_at?: string;
}

interface RawStore {
  readonly url?: string;
  readonly unavailable?: 'refuse' | 'allow_reads';
  readonly max_answer?: string;
  readonly encryption_key?: string;
}

export type RawPrivilege = 'low' | 'high' | number;

interface RawAgent {
  readonly privilege?: RawPrivilege;
  readonly credentials?: readonly (
    | string
    | { readonly key: string; readonly host?: boolean; readonly name?: string }
  )[];
  readonly defaults?: JsonObject;
}

export interface RawRoute {
  readonly name: string;
  readonly path?: string;
  readonly upstream?: string;
  readonly verify?: 'check' | 'receipt' | 'either';
  readonly agents?: readonly string[];
  readonly http?: readonly RawHttpCall[];
  readonly openapi?: string | RawOpenApi;
  readonly mcp?: string | RawMcp;
  readonly tools?: readonly RawTool[];
  readonly timeout?: string;
  readonly limit?: string;
  readonly upstream_tls?: {
    readonly ca?: string;
    readonly cert?: string;
    readonly key?: string;
    readonly server_name?: string;
  };
  readonly upstream_headers?: Readonly<Record<string, string>>;
  readonly headers?: readonly string[];
  readonly pass_authorization?: boolean;
  readonly methods?: readonly string[];
  readonly annotations?: 'trusted' | 'untrusted';
  readonly pins?: 'first_use' | 'required' | 'off';
  readonly pass?: readonly string[];
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  readonly idempotency?: 'required' | 'optional';
}

type HttpMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface RawHttpCall {
  readonly name: string;
  readonly method: HttpMethod;
  readonly path: string;
  readonly writes?: boolean;
  readonly input?: JsonObject;
  readonly result?: JsonObject;
  readonly description?: string;
}

interface RawOpenApi {
  readonly document: string;
  readonly digest?: string;
  readonly rename?: Readonly<Record<string, string>>;
}

interface RawMcp {
  readonly url?: string;
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly folder?: string;
}

/** An entry of a route's `tools`: words about one tool, or about all that a glob names. */
export interface RawTool {
  readonly name: string;
  readonly writes?: boolean;
  readonly undo?: string | { readonly tool: string; readonly with?: Readonly<Record<string, string>> };
  readonly irreversible?: boolean;
  readonly idempotent?: boolean;
  readonly idempotency?:
    | 'required'
    | { readonly header?: string; readonly argument?: string; readonly required?: boolean };
  readonly sends_out?: boolean;
  readonly reads_outside?: boolean;
  readonly subject_argument?: string | readonly string[];
  readonly confidential?: boolean;
  readonly privilege?: RawPrivilege;
  readonly agents?: readonly string[];
  readonly confirm?: 'always' | 'reasons';
  readonly after?: readonly (string | { readonly tool: string; readonly bind?: Readonly<Record<string, string>> })[];
  readonly not_after?: readonly string[];
  readonly at_most?: number | RawLimit | readonly RawLimit[];
  readonly checks?: readonly RawCondition[];
  readonly filter?: RawFilter;
  readonly spend?: readonly RawSpend[];
  readonly currency?: string;
  readonly outcome?: RawOutcome;
  readonly failed_when?: readonly (number | '4xx' | '5xx' | RawCondition)[];
  readonly retry?: RawRetry;
  readonly safe_if_nothing_happened?: boolean;
  readonly restores?: boolean;
  readonly arguments?: Readonly<Record<string, 'filename' | 'version' | 'prose'>>;
  readonly defaults?: JsonObject;
  readonly result?: JsonObject;
  readonly description?: string;
  readonly pin?: string;
  readonly timeout?: string;
}

type Period = 'call' | 'run' | 'session' | 'minute' | 'hour' | 'day' | 'week' | 'month';

export interface RawLimit {
  readonly count: number;
  readonly per: Period;
}

export interface RawSpend {
  readonly field: string;
  readonly at_most: number | string;
  readonly per: Period;
  readonly pool?: string;
}

interface RawRetry {
  readonly attempts?: number;
}

/** A value, a list, or where the value is read when the call comes. */
export type RawOperand = JsonValue | { readonly from?: string; readonly same?: string; readonly from_row?: string };

/** A condition; its operators are the `OPERATORS` of policy/conditions/condition.ts. */
export interface RawCondition {
  readonly field?: string;
  readonly total?: string;
  readonly count?: string;
  readonly any?: readonly RawCondition[];
  readonly unknown?: 'pass';
  readonly because?: string;
  readonly is?: RawOperand;
  readonly is_not?: RawOperand;
  readonly one_of?: RawOperand;
  readonly none_of?: RawOperand;
  readonly at_least?: RawOperand;
  readonly at_most?: RawOperand;
  readonly under?: RawOperand;
  readonly over?: RawOperand;
  readonly between?: RawOperand;
  readonly before?: RawOperand;
  readonly after?: RawOperand;
  readonly contains?: RawOperand;
}

export interface RawFilter {
  readonly each: string;
  readonly keep: readonly RawCondition[];
}

export interface RawOutcome {
  readonly follow: string;
  readonly same: string;
  readonly done_when: readonly RawCondition[];
  readonly failed_when?: readonly RawCondition[];
  readonly give_up_after?: number;
}

export interface RawFact {
  readonly from: string;
  readonly same?: string;
}
