import type { UpstreamHeaders } from '../../upstream/headers.ts'
import type { CallRecord } from './record.ts'

/** The kinds of records. Their places are stored, so a new one comes last. */
export const KINDS = ['running', 'answered', 'not_kept', 'unknown'] as const satisfies readonly CallRecord['is'][]
/** The most common types of a response. Their places are stored, too. */
const TYPES = ['application/json', 'application/json; charset=utf-8']
/** The headers of a response are written out. */
const OTHER_HEADERS = 0xff
/** So much of the digest is kept: a multiple of three bytes, whose base64 is the beginning of the base64 of the whole. */
const DIGEST_BYTES = 9

/**
 * A record in as few bytes as may be: its kind, the beginning of its digest, and what else the kind has. A response has its
 * status, the place of its type in {@link TYPES}, and its body. {@link OTHER_HEADERS} stands for all of its headers as JSON, with
 * their length before them.
 */
export function pack(record: CallRecord): Buffer {
  const digest = Buffer.from(record.digest, 'base64url').subarray(0, DIGEST_BYTES)
  const head = Buffer.concat([uint(KINDS.indexOf(record.is), 1), digest])
  switch (record.is) {
    case 'running': {
      const until = Buffer.alloc(8)
      until.writeDoubleBE(record.leaseUntil)
      return Buffer.concat([head, until])
    }
    case 'answered': {
      const { status, headers, body } = record
      const type = commonType(headers, body)
      const pieces = [head, uint(status, 2), uint(type, 1)]
      if (type !== OTHER_HEADERS) return Buffer.concat([...pieces, body])
      const written = Buffer.from(JSON.stringify(headers))
      return Buffer.concat([...pieces, uint(written.length, 4), written, body])
    }
    case 'not_kept':
      return Buffer.concat([head, uint(record.status, 2)])
    case 'unknown':
      return head
  }
}

/** The record in these bytes, with the beginning of its digest. Undefined if another version has written a kind of its own. */
export function unpack(bytes: Buffer): CallRecord | undefined {
  const is = KINDS[bytes.readUInt8()]
  const digest = bytes.toString('base64url', 1, 1 + DIGEST_BYTES)
  const rest = bytes.subarray(1 + DIGEST_BYTES)
  switch (is) {
    case 'running':
      return { is, digest, leaseUntil: rest.readDoubleBE() }
    case 'answered':
      return { is, digest, status: rest.readUInt16BE(), ...unpackResponse(rest.subarray(2)) }
    case 'not_kept':
      return { is, digest, status: rest.readUInt16BE() }
    case 'unknown':
      return { is, digest }
    case undefined:
      return undefined
  }
}

function unpackResponse(bytes: Buffer): { headers: UpstreamHeaders; body: Buffer } {
  const type = TYPES[bytes.readUInt8()]
  if (type !== undefined) {
    const body = bytes.subarray(1)
    return { headers: { 'content-type': type, 'content-length': String(body.length) }, body }
  }
  const end = 5 + bytes.readUInt32BE(1)
  return { headers: JSON.parse(bytes.toString('utf8', 5, end)) as UpstreamHeaders, body: bytes.subarray(end) }
}

/** The place of the type, where the response has no other header but its true length. */
function commonType(headers: UpstreamHeaders, body: Buffer): number {
  const { 'content-type': type, 'content-length': length, ...others } = headers
  const isCommon = length === String(body.length) && Object.keys(others).length === 0
  const place = isCommon && typeof type === 'string' ? TYPES.indexOf(type) : -1
  return place === -1 ? OTHER_HEADERS : place
}

function uint(value: number, bytes: number): Buffer {
  const written = Buffer.alloc(bytes)
  written.writeUIntBE(value, 0, bytes)
  return written
}
