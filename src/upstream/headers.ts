import type { IncomingHttpHeaders, OutgoingHttpHeader } from 'node:http'

/** Headers of an answer of upstream, by lower-case name; a repeated one has several values. */
export type UpstreamHeaders = Readonly<Record<string, string | string[] | undefined>>

/** Request headers that go upstream as they came; framing, credentials and our own are added apart. */
export const REQUEST_HEADERS = [
  'accept',
  'accept-encoding',
  'accept-language',
  'content-type',
  'if-none-match',
  'if-modified-since',
  'idempotency-key',
  'traceparent',
  'tracestate',
] as const

const RESPONSE_HEADERS: ReadonlySet<string> = new Set([
  'content-type',
  'content-length',
  'content-encoding',
  'content-language',
  'content-disposition',
  'etag',
  'last-modified',
  'retry-after',
])

/** Sent with every request of ours. */
export const USER_AGENT = 'trading-bff'

/** The headers of a browser's request that go upstream, as a flat list of names and values. */
export function requestHeaders(headers: IncomingHttpHeaders, requestId: string): string[] {
  const list = ['user-agent', USER_AGENT, 'x-request-id', requestId]
  for (const name of REQUEST_HEADERS) {
    const value = headers[name]
    if (typeof value === 'string') list.push(name, value)
  }
  return list
}

/** Our own headers and those of upstream's answer that come back, as a flat list of names and values. */
export function responseHeaders(
  own: Record<string, unknown>,
  headers: UpstreamHeaders,
): OutgoingHttpHeader[] {
  const list: OutgoingHttpHeader[] = ['cache-control', 'no-store']
  for (const name in own) list.push(name, own[name] as OutgoingHttpHeader)
  for (const name in headers) {
    if (comesBack(name)) list.push(name, headers[name] as string | string[])
  }
  return list
}

function comesBack(name: string): boolean {
  return RESPONSE_HEADERS.has(name) || name.startsWith('ratelimit') || name.startsWith('x-ratelimit-')
}
