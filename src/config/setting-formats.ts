import { statSync } from 'node:fs'
import { isIP } from 'node:net'
import { parseRedisUrl } from './redis-address.ts'

/** What the text of a setting may be: a test, and how a fault is explained. */
export interface Format {
  readonly test: (value: string) => boolean
  readonly must: string
}

const isOrigin = (value: string) =>
  isUrl(value, ['http:', 'https:'], (url) => url.href === `${url.origin}/` && url.hostname !== '')
const isHost = (value: string) => /^[a-z0-9.-]+(:\d{1,5})?$|^\[[0-9a-f:]+\](:\d{1,5})?$/i.test(value)
const isPrintable = (value: string) => /^[\x20-\x7e]+$/.test(value)
const everyPart = (value: string, test: (part: string) => boolean) => splitList(value).every(test)
const isBase = (url: URL) => url.search === '' && url.hash === '' && !hasUserinfo(url)

/** The formats named in the rules of the settings. */
export const settingFormats = {
  origin: { test: isOrigin, must: 'an origin such as https://bff.example' },
  origins: {
    test: (value) => everyPart(value, isOrigin),
    must: 'origins such as https://app.example, comma-separated',
  },
  httpUrl: {
    test: (value) => isUrl(value, ['http:', 'https:'], isBase),
    must: 'an http(s) address without user, query or fragment',
  },
  wsUrl: {
    test: (value) => isUrl(value, ['ws:', 'wss:'], isBase),
    must: 'a ws(s) address without user, query or fragment',
  },
  redisUrl: {
    test: (value) => parseRedisUrl(value) !== undefined,
    must: 'redis://user:password@host:6379/0 (rediss:// for TLS), several of a cluster comma-separated, or redis+sentinel://host:port,host:port/master-name',
  },
  secrets: {
    test: (value) => everyPart(value, (part) => Buffer.byteLength(part) >= 32),
    must: 'secrets of at least 32 bytes each, comma-separated',
  },
  trustProxy: {
    test: (value) => value === 'none' || /^\d{1,2}$/.test(value) || everyPart(value, isAddressRange),
    must: 'none, a number of hops, or addresses and CIDRs, comma-separated',
  },
  hosts: { test: (value) => everyPart(value, isHost), must: 'hosts (host or host:port), comma-separated' },
  path: {
    test: (value) => /^(\/[A-Za-z0-9_-]+)+$/.test(value),
    must: 'a path such as /partners/v1/overview: letters, digits, _ and - only',
  },
  jsonPointer: {
    test: (value) => /^(\/([^~]|~[01])*)+$/.test(value),
    must: 'a JSON pointer such as /data/url',
  },
  headerName: { test: (value) => /^[A-Za-z0-9-]+$/.test(value), must: 'a header name' },
  scope: {
    test: (value) => /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/.test(value),
    must: 'scopes separated by one space (RFC 6749 §3.3)',
  },
  folder: {
    test: (value) => statSync(value, { throwIfNoEntry: false })?.isDirectory() === true,
    must: 'a folder that is there',
  },
  text: { test: (value) => value !== '', must: 'a text that is not empty' },
  workers: {
    test: (value) => value === 'auto' || /^[1-9]\d{0,2}$/.test(value),
    must: 'a number of processes from 1 to 999, or auto',
  },
  printable: { test: isPrintable, must: 'printable ASCII' },
  flag: { test: (value) => /^(0|1|true|false)$/.test(value), must: '1 or 0' },
} as const satisfies Record<string, Format>

/** The name of a format. */
export type SettingFormat = keyof typeof settingFormats

/** `a, b` → `['a', 'b']`; an empty part stays, so that it can be refused. */
export function splitList(value: string): string[] {
  return value.split(',').map((part) => part.trim())
}

/** Names and addresses that only this machine answers to (RFC 6761 §6.3, RFC 1122 §3.2.1.3). */
export function isLoopbackHost(hostname: string): boolean {
  const name = hostname.toLowerCase()
  return (
    name === 'localhost' ||
    name.endsWith('.localhost') ||
    name === '[::1]' ||
    (isIP(name) === 4 && name.startsWith('127.'))
  )
}

function isUrl(value: string, schemes: readonly string[], more: (url: URL) => boolean): boolean {
  const url = URL.parse(value)
  return url !== null && schemes.includes(url.protocol) && /^[a-z]+:\/\//i.test(value) && more(url)
}

function hasUserinfo(url: URL): boolean {
  return url.username !== '' || url.password !== ''
}

function isAddressRange(value: string): boolean {
  const [address = '', bits, ...rest] = value.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}
