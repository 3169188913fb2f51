import { accessSync, constants, statSync } from 'node:fs'
import { isIP } from 'node:net'
import { isEndpointQuery, parseAuthorizationParams } from './authorization-params.ts'
import { parseClientKeys } from './client-key.ts'
import { isBindable } from './hostname.ts'
import { areHeaders, keyValues } from './key-values.ts'
import { parseRedisUrl } from './redis-address.ts'
import { parseBudget, parseShares } from './upstream-budget.ts'

/** A format of setting values: a test, and what a value must be, in words that complete “NAME must be …”. */
export interface Format {
  readonly test: (value: string) => boolean
  readonly must: string
}

const isOrigin = (value: string) =>
  isUrl(value, ['http:', 'https:'], (url) => url.href === `${url.origin}/` && url.hostname !== '')
const isHost = (value: string) => {
  const isHostAndPort = /^[a-z0-9.-]+(:\d{1,5})?$|^\[[0-9a-f:]+\](:\d{1,5})?$/i.test(value)
  const url = isHostAndPort ? URL.parse(`wss://${value}`) : null
  return url !== null && url.port !== '0' && !/^[.-]|\.[.-]/.test(url.hostname)
}
const isApiPath = (value: string) => /^(\/([A-Za-z0-9_-]+|:\w+|\{\w+\}))+$/.test(value)
const isPrintable = (value: string) => /^ *[\x21-\x7e][\x20-\x7e]*$/.test(value)
const everyPart = (value: string, test: (part: string) => boolean) => splitList(value).every(test)
/**
 * An address without user or fragment, and without white space or `\`. A URL parser drops the one and reads the other as `/`,
 * but the text is used as it was given.
 */
const isAddress = (value: string, schemes: readonly string[], test: (url: URL) => boolean = () => true) =>
  /^[^\s\\#]+$/.test(value) && isUrl(value, schemes, (url) => url.username === '' && url.password === '' && test(url))
/** An address that paths can be appended to. */
const isBase = (value: string, schemes: readonly string[]) => !value.includes('?') && isAddress(value, schemes)
const hasEndpointQuery = ({ search }: URL) => search === '' || isEndpointQuery(search.slice(1))

/** Headers that the server sends itself or passes on, and those that would change what a request is. */
const TAKEN_HEADERS =
  /^(?:accept.*|authorization|connection|content-.*|cookie|date|expect|forwarded|host|idempotency-key|if-.*|keep-alive|origin|proxy-.*|range|referer|te|trace.*|trailer|transfer-encoding|upgrade|user-agent|via|x-forwarded-.*|x-request-id)$/i

/** The formats that the rules of the settings refer to by name. */
export const settingFormats = {
  origin: { test: isOrigin, must: 'an origin such as https://bff.example' },
  origins: {
    test: (value) => everyPart(value, isOrigin),
    must: 'comma-separated origins such as https://app.example',
  },
  httpUrl: {
    test: (value) => isBase(value, ['http:', 'https:']),
    must: 'an http or https address without user, query, fragment or white space',
  },
  endpoint: {
    test: (value) => isAddress(value, ['http:', 'https:'], hasEndpointQuery),
    must: 'an http or https address without user, fragment or white space, whose query has no credentials, no prompt, and nothing that this server sets itself (docs/settings.md)',
  },
  wsUrl: {
    test: (value) => isBase(value, ['ws:', 'wss:']),
    must: 'a ws or wss address without user, query, fragment or white space',
  },
  redisUrl: {
    test: (value) => parseRedisUrl(value) !== undefined,
    must: 'redis://user:password@host:6379/0 (rediss:// for TLS), redis+cluster://user:password@host:6379 or a comma-separated list of redis:// addresses for a Cluster, or redis+sentinel://host:port,host:port/master-name; without query or fragment (in a password, write ? as %3F and # as %23); in a list the first has the credentials, and the others the same or none',
  },
  clientKeys: {
    test: (value) => parseClientKeys(value) !== undefined,
    must: 'one or two different private keys as PEM or JWK, not encrypted: EC (P-256, P-384, P-521), Ed25519, or RSA of at least 2048 bits',
  },
  authorizationParams: {
    test: (value) => parseAuthorizationParams(value) !== undefined,
    must: 'a query string such as audience=api&max_age=3600, without prompt=registration, credentials, and whatever this server sets itself (docs/settings.md)',
  },
  secrets: {
    test: areSecrets,
    must: 'comma-separated secrets of at least 32 bytes each, all different, with no white space inside (a list is not one per line)',
  },
  token: {
    test: (value) => /^[\x21-\x7e]{32,1024}$/.test(value),
    must: '32 to 1024 printable ASCII characters without spaces',
  },
  claims: {
    test: areClaims,
    must: 'up to 32 different names of claims, separated by commas, such as name,email',
  },
  addresses: {
    test: (value) => everyPart(value, isAddressRange),
    must: 'comma-separated addresses and CIDRs, of which none has all addresses (/0)',
  },
  trustProxy: {
    test: (value) => value === 'none' || /^\d{1,2}$/.test(value) || everyPart(value, isAddressRange),
    must: 'none, a number of hops, or comma-separated addresses and CIDRs, of which none has all addresses (/0)',
  },
  hosts: {
    test: (value) => everyPart(value, isHost),
    must: 'comma-separated hosts (host or host:port, with a port from 1 to 65535)',
  },
  bindable: { test: isBindable, must: 'an IP address in its usual form, such as 127.0.0.1 or ::1, or a host name' },
  path: {
    test: (value) => /^(\/[A-Za-z0-9_-]+)+$/.test(value),
    must: 'a path such as /partners/v1/overview, of letters, digits, _ and - only',
  },
  apiPaths: {
    test: (value) => value === 'none' || value === 'all' || everyPart(value, isApiPath),
    must: 'none, all, or comma-separated paths of POST and PATCH calls as in /openapi.json, without /api',
  },
  jsonPointer: {
    test: (value) => /^(\/([^~]|~[01])*)+$/.test(value),
    must: 'a JSON pointer such as /data/url',
  },
  budget: {
    test: (value) => parseBudget(value) !== undefined,
    must: 'calls/seconds such as 300/60,1000/600: whole numbers, 1 to 3600 seconds, each window once',
  },
  budgetName: { test: (value) => /^[A-Za-z0-9_-]{1,64}$/.test(value), must: '1 to 64 letters, digits, _ and -' },
  budgetShares: {
    test: (value) => parseShares(value) !== undefined,
    must: 'three whole numbers from 100 to 1 such as 100,80,50, none larger than the one before it',
  },
  fraction: { test: (value) => /^0(\.\d{1,4})?$/.test(value), must: 'a decimal from 0 to less than 1, such as 0.1' },
  headerName: {
    test: (value) => /^[A-Za-z0-9-]+$/.test(value) && !TAKEN_HEADERS.test(value),
    must: 'a header name such as Service-App-ID, and none that has a meaning of its own in a request',
  },
  scope: {
    test: (value) => /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/.test(value),
    must: 'scopes separated by single spaces (RFC 6749 §3.3)',
  },
  folder: { test: isFolder, must: 'an existing folder' },
  file: { test: isReadableFile, must: 'a file that can be read' },
  headers: {
    test: areHeaders,
    must: 'comma-separated headers such as name=value, with %20 for a space and %2C for a comma',
  },
  attributes: {
    test: (value) => keyValues(value) !== undefined,
    must: 'comma-separated attributes such as name=value, with %20 for a space and %2C for a comma',
  },
  ratio: {
    test: (value) => /^(?:0?\.\d+|[01](?:\.0*)?)$/.test(value),
    must: 'a decimal from 0 to 1, such as 0.01',
  },
  workers: {
    test: (value) => value === 'auto' || /^[1-9]\d{0,2}$/.test(value),
    must: 'a number of processes from 1 to 999, or auto',
  },
  printable: { test: isPrintable, must: 'printable ASCII, and not blank' },
  flag: { test: (value) => /^(0|1|true|false)$/.test(value), must: 'true or false (or 1 or 0)' },
} as const satisfies Record<string, Format>

/** The name of a format. */
export type SettingFormat = keyof typeof settingFormats

/** Splits `a, b` into `['a', 'b']`. Keeps empty parts, so that the formats refuse them. */
export function splitList(value: string): string[] {
  return value.split(',').map((part) => part.trim())
}

/** Whether the value of a flag means true. */
export const isOn = (value: string) => value === '1' || value === 'true'

function isUrl(value: string, schemes: readonly string[], test: (url: URL) => boolean): boolean {
  const url = URL.parse(value)
  return url !== null && schemes.includes(url.protocol) && /^[a-z]+:\/\//i.test(value) && test(url)
}

function areSecrets(value: string): boolean {
  const secrets = splitList(value)
  return new Set(secrets).size === secrets.length && secrets.every((part) => /^\S+$/.test(part) && isLong(part))
}

/** Some claims have URLs as names (OpenID Connect Core §5.1.2). */
const CLAIM = /^[\w:/.~#@-]{1,128}$/

function areClaims(value: string): boolean {
  const names = splitList(value)
  return names.length <= 32 && new Set(names).size === names.length && names.every((name) => CLAIM.test(name))
}

const isLong = (secret: string) => Buffer.byteLength(secret) >= 32

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

/** A setting in seconds, in milliseconds. */
export const seconds = (count: number): number => count * 1000

/**
 * The text of a file with a secret. White space around it does not count.
 * @throws TypeError for bytes that are no UTF-8: each would become the same character, so that the secret would be guessed easily
 */
export function textOfFile(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes).trim()
}
