/**
 * Reads `ExportTraceServiceRequest` from its protobuf bytes (opentelemetry-proto, trace/v1/trace.proto), by hand and apart
 * from the library that wrote them. Kinds and status codes are those of that file.
 */

/** One span as a collector gets it. Ids are hexadecimal; no parent is an empty text. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly traceState: string;
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client' | 'other';
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: number;
  readonly isError: boolean;
  readonly statusMessage: string;
  readonly resource: Readonly<Record<string, unknown>>;
}

type Field = { readonly number: number; readonly value: bigint | Buffer };

/** The spans of a request. Throws where the bytes are no protobuf. */
export function decodeSpans(request: Buffer): readonly ReceivedSpan[] {
  return messages(request, 1).flatMap((resourceSpans) => {
    const [resource] = messages(resourceSpans, 1);
    const about = resource === undefined ? {} : attributesOf(resource, 1);
    return messages(resourceSpans, 2)
      .flatMap((scopeSpans) => messages(scopeSpans, 2))
      .map((span) => decodeSpan(span, about));
  });
}

const KINDS: readonly ReceivedSpan['kind'][] = ['other', 'internal', 'server', 'client'];

function decodeSpan(span: Buffer, resource: Readonly<Record<string, unknown>>): ReceivedSpan {
  const [status = Buffer.alloc(0)] = messages(span, 15);
  return {
    traceId: bytes(span, 1).toString('hex'),
    spanId: bytes(span, 2).toString('hex'),
    traceState: bytes(span, 3).toString(),
    parentId: bytes(span, 4).toString('hex'),
    name: bytes(span, 5).toString(),
    kind: KINDS[Number(number(span, 6))] ?? 'other',
    startNs: number(span, 7),
    endNs: number(span, 8),
    attributes: attributesOf(span, 9),
    events: messages(span, 11).length,
    isError: number(status, 3) === 2n,
    statusMessage: bytes(status, 2).toString(),
    resource,
  };
}

function attributesOf(message: Buffer, at: number): Record<string, unknown> {
  return Object.fromEntries(
    messages(message, at).map((pair) => {
      const [field] = fields(bytes(pair, 2));
      return [bytes(pair, 1).toString(), field === undefined ? undefined : anyValue(field)];
    }),
  );
}

function anyValue({ number: kind, value }: Field): unknown {
  if (kind === 1) return value.toString();
  if (kind === 2) return value === 1n;
  return kind === 3 ? Number(value) : value;
}

function messages(message: Buffer, at: number): readonly Buffer[] {
  return fields(message).flatMap(({ number: found, value }) => (found === at && Buffer.isBuffer(value) ? [value] : []));
}

function bytes(message: Buffer, at: number): Buffer {
  return messages(message, at)[0] ?? Buffer.alloc(0);
}

function number(message: Buffer, at: number): bigint {
  const found = fields(message).find((field) => field.number === at)?.value;
  return typeof found === 'bigint' ? found : 0n;
}

/** Tags and values of a message (protobuf encoding, "Message Structure"). */
function fields(message: Buffer): readonly Field[] {
  const found: Field[] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(varint());
    const wire = tag & 7;
    if (wire === 0) found.push({ number: tag >> 3, value: varint() });
    else if (wire === 1 || wire === 5) {
      found.push({
        number: tag >> 3,
        value: wire === 1 ? message.readBigUInt64LE(at) : BigInt(message.readUInt32LE(at)),
      });
      at += wire === 1 ? 8 : 4;
    } else if (wire === 2) {
      const length = Number(varint());
      found.push({ number: tag >> 3, value: message.subarray(at, at + length) });
      at += length;
    } else throw new Error(`wire type ${wire}`);
  }
  return found;
}
