import type { IncomingHttpHeaders } from 'node:http'

/** Request headers that go upstream as they came; framing, credentials and our own are added apart. */
const REQUEST_HEADERS = [
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

/** The headers of upstream's answer that come back, put on top of our own. */
export function responseHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  own: Readonly<Record<string, unknown>>,
): Record<string, string | string[]> {
  const result = { ...own, 'cache-control': 'no-store' } as Record<string, string | string[]>
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined && comesBack(name)) result[name] = value
  }
  return result
}

function comesBack(name: string): boolean {
  return RESPONSE_HEADERS.has(name) || name.startsWith('ratelimit') || name.startsWith('x-ratelimit-')
}
