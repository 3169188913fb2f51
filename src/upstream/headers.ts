import type { IncomingHttpHeaders, OutgoingHttpHeader } from 'node:http'
import type { Config } from '../config/config.ts'

/** Headers of an upstream response, by lower-case name; a repeated header has several values. */
export type UpstreamHeaders = Readonly<Record<string, string | string[] | undefined>>

/** Request headers that go upstream unchanged; framing, credentials and the server's own headers are added separately. */
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

/** The response that must not have a length (RFC 9110 §8.6). */
const NO_CONTENT = 204

/** Values of Connection that name none of the headers here. Nearly every peer sends one of them. */
const NAMES_NOTHING: ReadonlySet<string> = new Set(['keep-alive', 'Keep-Alive', 'close', 'upgrade', 'Upgrade'])

/** The User-Agent of every request to upstream. */
export const USER_AGENT = 'trading-bff'

/** The headers of a request to upstream on behalf of a browser, as a flat list of names and values. */
export function requestHeaders(headers: IncomingHttpHeaders, requestId: string): string[] {
  const list = ['user-agent', USER_AGENT, 'x-request-id', requestId]
  const dropped = namedIn(headers.connection)
  for (const name of REQUEST_HEADERS) {
    const value = headers[name]
    if (typeof value === 'string' && dropped?.has(name) !== true) list.push(name, value)
  }
  return list
}

/** The headers of a request that this server makes by itself, with the token of a user, as a flat list of names and values. */
export function ownRequestHeaders(
  requestId: string,
  accessToken: string,
  { appIdHeader, appId }: Pick<Config['upstream'], 'appIdHeader' | 'appId'>,
): string[] {
  const list = ['user-agent', USER_AGENT, 'x-request-id', requestId, 'accept', 'application/json']
  return [...list, 'authorization', `Bearer ${accessToken}`, appIdHeader, appId]
}

/**
 * The server's own headers and those that are passed on from upstream's response, as a flat list of names and values.
 * @param status of the response
 * @param hasBudget leaves out what upstream says about its limits: it is about all users together
 */
export function responseHeaders(
  status: number,
  own: readonly OutgoingHttpHeader[],
  headers: UpstreamHeaders,
  hasBudget: boolean,
): OutgoingHttpHeader[] {
  const list: OutgoingHttpHeader[] = ['cache-control', 'no-store', ...own]
  const dropped = namedIn(headers['connection'])
  for (const name in headers) {
    if (name === 'content-length' || !isPassedOn(name, hasBudget) || dropped?.has(name) === true) continue
    list.push(name, headers[name] as string | string[])
  }
  // Last: after a length, Node decodes a Content-Disposition as UTF-8, and throws where it cannot send the result.
  const { 'content-length': length } = headers
  if (length !== undefined && status !== NO_CONTENT) list.push('content-length', length)
  return list
}

/** The headers of upstream's response that are passed on. For the budget see {@link responseHeaders}. */
export function passedOn(headers: UpstreamHeaders, hasBudget: boolean): UpstreamHeaders {
  const dropped = namedIn(headers['connection'])
  const entries = Object.entries(headers)
  return Object.fromEntries(entries.filter(([name]) => isPassedOn(name, hasBudget) && dropped?.has(name) !== true))
}

/** The headers that Connection names: they are for the next hop alone (RFC 9110 §7.6.1). Undefined for none. */
function namedIn(connection: string | string[] | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || NAMES_NOTHING.has(String(connection))) return undefined
  const names = String(connection).toLowerCase().split(',')
  return new Set(names.map((name) => name.trim()))
}

function isPassedOn(name: string, hasBudget: boolean): boolean {
  return RESPONSE_HEADERS.has(name) || (!hasBudget && (name.startsWith('ratelimit') || name.startsWith('x-ratelimit-')))
}
