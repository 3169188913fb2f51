import { hash } from 'node:crypto'
import type { UpstreamHeaders } from '../../upstream/headers.ts'

/** A response of upstream that is kept for the repetitions of its call. The headers are those that are passed on. */
export interface KeptAnswer {
  readonly status: number
  readonly headers: UpstreamHeaders
  readonly body: Buffer
}

/** The record of a call with a key. */
export type CallRecord = {
  /** Identifies the call ({@link digestOf}): the digest, or its beginning where the record is compact. */
  readonly digest: string
} & (
  | {
      readonly is: 'running'
      /** From this time on, unless the holder moves it, the outcome of the call counts as unknown (epoch ms). */
      readonly leaseUntil: number
    }
  | ({ readonly is: 'answered' } & KeptAnswer)
  /** The call was answered with this status, and nothing more is known. */
  | { readonly is: 'not_kept'; readonly status: number }
  /** The call may have been executed. */
  | { readonly is: 'unknown' }
)

/** Identifies a call by its method, its path with the query, and its body. */
export function digestOf(method: string, path: string, body: Buffer | null): string {
  // Neither a method nor a path can contain a space.
  const call = Buffer.from(`${method} ${path} `)
  return hash('sha256', body === null ? call : Buffer.concat([call, body]), 'base64url')
}
