import { hash } from 'node:crypto'
import type { Envelope } from '../../sessions/index.ts'
import type { UpstreamHeaders } from '../../upstream/headers.ts'

/** A response of upstream that is kept for the repetitions of its call. The headers are those that are passed on. */
export interface KeptAnswer {
  readonly status: number
  readonly headers: UpstreamHeaders
  readonly body: Buffer
}

/** The record of a call with a key. The digest identifies the call ({@link digestOf}). */
export type CallRecord = { readonly digest: string } & (
  | {
      readonly is: 'running'
      /** From this time on, unless the holder moves it, the outcome of the call counts as unknown (epoch ms). */
      readonly leaseUntil: number
    }
  /** `body` is base64. */
  | { readonly is: 'answered'; readonly status: number; readonly headers: UpstreamHeaders; readonly body: string }
  /** The call was answered with this status, and nothing more is known. */
  | { readonly is: 'not_kept'; readonly status: number }
  /** The call may have been executed. */
  | { readonly is: 'unknown' }
)

const KINDS: ReadonlySet<unknown> = new Set<CallRecord['is']>(['running', 'answered', 'not_kept', 'unknown'])

/** Identifies a call by its method, its path with the query, and its body. */
export function digestOf(method: string, path: string, body: Buffer | null): string {
  // Neither a method nor a path can contain a space.
  const call = Buffer.from(`${method} ${path} `)
  return hash('sha256', body === null ? call : Buffer.concat([call, body]), 'base64url')
}

/** The owner and the place of a record. */
export interface RecordPlace {
  readonly recordKey: string
  /** The session's id, without which the record cannot be opened. */
  readonly sessionId: string
}

/** Seals a record. Each result is unique, even for equal records, so it identifies its writer. */
export function sealRecord(envelope: Envelope, { recordKey, sessionId }: RecordPlace, record: CallRecord): string {
  return envelope.seal(recordKey, sessionId, JSON.stringify(record))
}

/** Undefined if this instance cannot read the record, though another one may be able to. */
export function openRecord(
  envelope: Envelope,
  { recordKey, sessionId }: RecordPlace,
  text: string,
): CallRecord | undefined {
  const opened = envelope.open(recordKey, sessionId, text)
  if (opened === undefined) return undefined
  // Only a server with the secrets can have written it. It may be of another version.
  const record = JSON.parse(opened) as CallRecord
  return KINDS.has(record.is) ? record : undefined
}
