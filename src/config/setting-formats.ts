import { accessSync, constants, statSync } from 'node:fs'
import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { isEndpointQuery, parseAuthorizationParams } from './authorization-params.ts'
import { parseClientKeys } from './client-key.ts'
import { isBindable } from './hostname.ts'
import { keyValues } from './key-values.ts'
import { parseRedisUrl } from './redis-address.ts'
import { mapped, type Format } from './setting-rule.ts'
import type { BudgetWindow, ByClass } from './upstream-budget.ts'

const text = (test: RegExp | ((value: string) => boolean), must: string): Format<string> => ({
  parse: (value) => ((test instanceof RegExp ? test.test(value) : test(value)) ? value : undefined),
  must,
})
const list = (test: (part: string) => boolean, must: string): Format<readonly string[]> => ({
  parse(value) {
    const parts = splitList(value)
    return parts.every(test) ? parts : undefined
  },
  must,
})
const originOf = (address: string): string => new URL(address).origin
const withoutSlash = (address: string): string => address.replace(/\/+$/, '')

/** Its host is a name or an address. A URL parser takes more, such as `*`, which no page's origin has. */
const isOrigin = (value: string) =>
  isUrl(value, ['http:', 'https:'], (url) => url.href === `${url.origin}/` && /^[\w.-]+$|^\[/.test(url.hostname))
const isHost = (value: string) => {
  const isHostAndPort = /^[a-z0-9.-]+(:\d{1,5})?$|^\[[0-9a-f:]+\](:\d{1,5})?$/i.test(value)
  const url = isHostAndPort ? URL.parse(`wss://${value}`) : null
  return url !== null && url.port !== '0' && !/^[.-]|\.[.-]/.test(url.hostname)
}
/**
 * An address without user or fragment, and without white space or `\`. A URL parser drops the one and reads the other as `/`,
 * but the text is used as it was given.
 */
const isAddress = (value: string, schemes: readonly string[], test: (url: URL) => boolean = () => true) =>
  /^[^\s\\#]+$/.test(value) && isUrl(value, schemes, (url) => url.username === '' && url.password === '' && test(url))
/** An address that paths can be appended to. */
const isBase = (value: string, schemes: readonly string[]) => !value.includes('?') && isAddress(value, schemes)
const hasEndpointQuery = ({ search }: URL) => search === '' || isEndpointQuery(search.slice(1))

const httpUrl = text(
  (value) => isBase(value, ['http:', 'https:']),
  'an http or https address without user, query, fragment or white space',
)

const addresses = list(isAddressRange, 'comma-separated addresses and CIDRs, of which none has all addresses (/0)')

/** Headers that the server sends itself or passes on, and those that would change what a request is. */
const TAKEN_HEADERS =
  /^(?:accept.*|authorization|connection|content-.*|cookie|date|expect|forwarded|host|idempotency-key|if-.*|keep-alive|origin|proxy-.*|range|referer|te|trace.*|trailer|transfer-encoding|upgrade|user-agent|via|x-forwarded-.*|x-request-id)$/i

const MAX_CALLS = 1_000_000
const MAX_SECONDS = 3600

/** The formats of the settings. */
export const formats = {
  origin: mapped(text(isOrigin, 'an origin such as https://bff.example'), originOf),
  origins: mapped(list(isOrigin, 'comma-separated origins such as https://app.example'), (all) => all.map(originOf)),
  /** To the letter. */
  httpUrl,
  /** An address to which paths are appended, without a slash at its end. */
  httpBase: mapped(httpUrl, withoutSlash),
  endpoint: text(
    (value) => isAddress(value, ['http:', 'https:'], hasEndpointQuery),
    'an http or https address without user, fragment or white space, whose query has no credentials, no prompt, and nothing that this server sets itself (docs/settings.md)',
  ),
  wsBase: mapped(
    text((value) => isBase(value, ['ws:', 'wss:']), 'a ws or wss address without user, query, fragment or white space'),
    withoutSlash,
  ),
  redisUrl: text(
    (value) => parseRedisUrl(value) !== undefined,
    'redis://user:password@host:6379/0 (rediss:// for TLS), redis+cluster://user:password@host:6379 or a comma-separated list of redis:// addresses for a Cluster, or redis+sentinel://host:port,host:port/master-name; without query or fragment (in a password, write ? as %3F and # as %23); in a list the first has the credentials, and the others the same or none',
  ),
  clientKeys: {
    parse: parseClientKeys,
    must: 'one or two different private keys as PEM or JWK, not encrypted: EC (P-256, P-384, P-521), Ed25519, or RSA of at least 2048 bits',
  },
  authorizationParams: {
    parse: parseAuthorizationParams,
    must: 'a query string such as audience=api&max_age=3600, without prompt=registration, credentials, and whatever this server sets itself (docs/settings.md)',
  },
  secrets: distinct(
    list(
      (part) => /^\S+$/.test(part) && Buffer.byteLength(part) >= 32,
      'comma-separated secrets of at least 32 bytes each, all different, with no white space inside (a list is not one per line)',
    ),
  ),
  token: text(/^[\x21-\x7e]{32,1024}$/, '32 to 1024 printable ASCII characters without spaces'),
  /** Some claims have URLs as names (OpenID Connect Core §5.1.2). */
  claims: distinct(
    list(
      (part) => /^[\w:/.~#@-]{1,128}$/.test(part),
      'up to 32 different names of claims, separated by commas, such as name,email',
    ),
    32,
  ),
  addresses,
  trustProxy: {
    parse: parseTrustProxy,
    must: 'none, a number of hops, or comma-separated addresses and CIDRs, of which none has all addresses (/0)',
  },
  hosts: list(isHost, 'comma-separated hosts (host or host:port, with a port from 1 to 65535)'),
  bindable: text(isBindable, 'an IP address in its usual form, such as 127.0.0.1 or ::1, or a host name'),
  path: text(/^(\/[A-Za-z0-9_-]+)+$/, 'a path such as /partners/v1/overview, of letters, digits, _ and - only'),
  apiPaths: {
    parse: parseApiPaths,
    must: 'none, all, or comma-separated paths of POST and PATCH calls as in /openapi.json, without /api',
  },
  jsonPointer: text(/^(\/([^~]|~[01])*)+$/, 'a JSON pointer such as /data/url'),
  budget: {
    parse: parseBudget,
    must: 'calls/seconds such as 300/60,1000/600: whole numbers, 1 to 3600 seconds, each window once',
  },
  budgetName: text(/^[A-Za-z0-9_-]{1,64}$/, '1 to 64 letters, digits, _ and -'),
  budgetShares: {
    parse: parseShares,
    must: 'three whole numbers from 100 to 1 such as 100,80,50, none larger than the one before it',
  },
  fraction: mapped(text(/^0(\.\d{1,4})?$/, 'a decimal from 0 to less than 1, such as 0.1'), Number),
  headerName: text(
    (value) => /^[A-Za-z0-9-]+$/.test(value) && !TAKEN_HEADERS.test(value),
    'a header name such as Service-App-ID, and none that has a meaning of its own in a request',
  ),
  scope: text(
    /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/,
    'scopes separated by single spaces (RFC 6749 §3.3)',
  ),
  folder: text(isFolder, 'an existing folder'),
  file: text(isReadableFile, 'a file that can be read'),
  headers: text(areHeaders, 'comma-separated headers such as name=value, with %20 for a space and %2C for a comma'),
  attributes: {
    parse: keyValues,
    must: 'comma-separated attributes such as name=value, with %20 for a space and %2C for a comma',
  },
  ratio: mapped(text(/^(?:0?\.\d+|[01](?:\.0*)?)$/, 'a decimal from 0 to 1, such as 0.01'), Number),
  /** The number of processes that it means on this machine. */
  workers: mapped(
    text((value) => value === 'auto' || /^[1-9]\d{0,2}$/.test(value), 'a number of processes from 1 to 999, or auto'),
    (value) => (value === 'auto' ? availableParallelism() : Number(value)),
  ),
  printable: text(/^ *[\x21-\x7e][\x20-\x7e]*$/, 'printable ASCII, and not blank'),
} as const

function distinct(format: Format<readonly string[]>, most = Infinity): Format<readonly string[]> {
  const isAllowed = (parts: readonly string[]) => parts.length <= most && new Set(parts).size === parts.length
  return mapped(format, (parts) => (isAllowed(parts) ? parts : undefined))
}

/** Splits `a, b` into `['a', 'b']`. Keeps empty parts, so that the formats refuse them. */
function splitList(value: string): string[] {
  return value.split(',').map((part) => part.trim())
}

function isUrl(value: string, schemes: readonly string[], test: (url: URL) => boolean): boolean {
  const url = URL.parse(value)
  return url !== null && schemes.includes(url.protocol) && /^[a-z]+:\/\//i.test(value) && test(url)
}

/** Fastify's `trustProxy`. The function tells whether to trust the proxy that is `hop` hops away. */
function parseTrustProxy(value: string) {
  if (value === 'none') return false
  if (!/^\d{1,2}$/.test(value)) return addresses.parse(value)?.slice()
  const hops = Number(value)
  return (_address: string, hop: number) => hop < hops
}

/** The paths of calls, with the parameters written as in the catalog. */
function parseApiPaths(value: string): 'all' | ReadonlySet<string> | undefined {
  if (value === 'all') return 'all'
  const paths = value === 'none' ? [] : splitList(value)
  if (!paths.every((path) => /^(\/([A-Za-z0-9_-]+|:\w+|\{\w+\}))+$/.test(path))) return undefined
  return new Set(paths.map((path) => path.replaceAll(/\{(\w+)\}/g, ':$1')))
}

function isFolder(value: string): boolean {
  try {
    return statSync(value).isDirectory()
  } catch {
    return false
  }
}

function isReadableFile(value: string): boolean {
  try {
    accessSync(value, constants.R_OK)
    return statSync(value).isFile()
  } catch {
    return false
  }
}

function isAddressRange(value: string): boolean {
  const [address = '', bits, ...rest] = value.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  // With /0, clients could choose their address. Fastify refuses it too.
  return bits === undefined || (/^0*[1-9]\d{0,2}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}

/** Parses UPSTREAM_BUDGET, such as `300/60,1000/600`, in its order. Undefined if it is not valid. */
function parseBudget(text: string): BudgetWindow[] | undefined {
  const windows = text.split(',').map((part) => {
    const [, calls = '', seconds = ''] = /^\s*([1-9]\d{0,6})\/([1-9]\d{0,3})\s*$/.exec(part) ?? []
    return { calls: Number(calls), windowMs: Number(seconds) * 1000 }
  })
  const isValid = windows.every(
    ({ calls, windowMs }) => calls >= 1 && calls <= MAX_CALLS && windowMs >= 1000 && windowMs <= MAX_SECONDS * 1000,
  )
  const isDistinct = new Set(windows.map(({ windowMs }) => windowMs)).size === windows.length
  return isValid && isDistinct ? windows : undefined
}

/** Parses UPSTREAM_BUDGET_SHARES, such as `100,80,50`. Undefined if it is not valid. */
function parseShares(text: string): ByClass | undefined {
  const parts = text.split(',').map((part) => (/^\s*[1-9]\d{0,2}\s*$/.test(part) ? Number(part) / 100 : NaN))
  const [orders = NaN, otps = NaN, reads = NaN, ...rest] = parts
  const isNested = orders <= 1 && otps <= orders && reads <= otps
  return isNested && rest.length === 0 ? { orders, otps, reads } : undefined
}

/**
 * The text of a file with a secret. White space around it does not count.
 * @throws TypeError for bytes that are no UTF-8: each would become the same character, so that the secret would be guessed easily
 */
export function textOfFile(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes).trim()
}

/** Whether a text is a list of headers. */
function areHeaders(text: string): boolean {
  const values = Object.values(keyValues(text) ?? {})
  return values.length > 0 && values.every((value) => /^[\x20-\x7e]*$/.test(value))
}
