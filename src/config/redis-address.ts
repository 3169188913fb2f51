import { withoutBrackets } from './hostname.ts'

/** The address of a Redis server or a Sentinel. */
export interface RedisNode {
  readonly host: string
  readonly port: number
}

/** The credentials for the servers, and whether connections to them use TLS. */
export interface RedisAccess {
  readonly username?: string
  readonly password?: string
  readonly tls: boolean
}

/** The session store that REDIS_URL names. */
export type RedisAddress =
  | { readonly is: 'single'; readonly url: string }
  | { readonly is: 'cluster'; readonly nodes: readonly RedisNode[]; readonly access: RedisAccess }
  | {
      readonly is: 'sentinel'
      readonly nodes: readonly RedisNode[]
      readonly access: RedisAccess
      /** The master's name in the configuration of the Sentinels. */
      readonly master: string
    }

/** Several servers: TLS, credentials, hosts, and what comes after them. */
const GROUP = /^redis(s?)\+(sentinel|cluster):\/\/(?:([^@/]*)@)?([^@/]+)(?:\/([A-Za-z0-9._-]*))?$/
const REDIS_PORT = 6379
const SENTINEL_PORT = 26_379

/** Parses REDIS_URL. Returns undefined if the text is not a valid address of a session store. */
export function parseRedisUrl(text: string): RedisAddress | undefined {
  // A URL parser drops line breaks and tabs, and so would make one address of two lines.
  if (text.split(',').some((part) => /[\t\r\n]/.test(part.trim()))) return undefined
  const group = GROUP.exec(text)
  if (group !== null) return groupAddress(group)
  const urls = text.split(',').map((part) => URL.parse(part.trim()))
  const [first] = urls
  if (!first || !urls.every(isRedisUrl)) return undefined
  const access = accessOf(first.username, first.password, first.protocol === 'rediss:')
  if (urls.length === 1) {
    const isDatabase = /^\/?\d*$/.test(first.pathname)
    return access === undefined || !isDatabase ? undefined : { is: 'single', url: text }
  }
  // Most Clusters have only database 0 (Valkey 9 may have more), and all nodes of one are reached in the same way.
  const isUniform = urls.every(
    (url) => url.protocol === first.protocol && /^\/?0?$/.test(url.pathname) && hasCredentialsOf(url, first),
  )
  const nodes = urls.map((url) => nodeOf(url, REDIS_PORT))
  return access === undefined || !isUniform ? undefined : { is: 'cluster', nodes, access }
}

/**
 * Returns an address without its credentials. Two addresses that have this in common name the same servers, in the same way.
 * @param url a valid address
 */
export function withoutCredentials(url: string): string {
  const address = parseRedisUrl(url)
  if (address?.is !== 'single') {
    const { username: _user, password: _password, ...access } = address?.access ?? { tls: false }
    return JSON.stringify({ ...address, access })
  }
  const { protocol, host, pathname } = new URL(address.url)
  return `${protocol}//${host}${pathname}`
}

/** The credentials in an address as one text, alone in a list; none if it has none. @param url a valid address */
export function credentialsOf(url: string): string[] {
  const { username, password } = redisAccess(url)
  return username === undefined && password === undefined ? [] : [JSON.stringify([username, password])]
}

/** How the servers of an address are reached. @param url a valid address */
export function redisAccess(url: string): RedisAccess {
  const address = parseRedisUrl(url)
  if (address?.is !== 'single') return address?.access ?? { tls: false }
  const { username, password, protocol } = new URL(address.url)
  return accessOf(username, password, protocol === 'rediss:') ?? { tls: false }
}

function groupAddress([, tls, kind, user = '', hosts = '', path = '']: RegExpExecArray): RedisAddress | undefined {
  const urls = hosts.split(',').map((host) => URL.parse(`redis://${host.trim()}`))
  const [username = '', ...password] = user.split(':')
  const access = accessOf(username, password.join(':'), tls === 's')
  if (access === undefined || !urls.every(isRedisUrl)) return undefined
  const nodesAt = (port: number): RedisNode[] => urls.map((url) => nodeOf(url, port))
  if (kind === 'sentinel')
    return path === '' ? undefined : { is: kind, nodes: nodesAt(SENTINEL_PORT), access, master: path }
  // Most Clusters have only database 0.
  return /^0?$/.test(path) ? { is: 'cluster', nodes: nodesAt(REDIS_PORT), access } : undefined
}

/** A query or fragment would be ignored. It may be a part of a password whose `?` or `#` is not encoded. */
function isRedisUrl(url: URL | null): url is URL {
  return url !== null && /^rediss?:$/.test(url.protocol) && url.hostname !== '' && !/[?#]/.test(url.href)
}

/** The nodes of a Cluster have the credentials of the first one, which the others need not repeat. */
function hasCredentialsOf({ username, password }: URL, first: URL): boolean {
  return (username === '' && password === '') || (username === first.username && password === first.password)
}

function nodeOf({ hostname, port }: URL, defaultPort: number): RedisNode {
  return { host: withoutBrackets(hostname), port: port === '' ? defaultPort : Number(port) }
}

/** Returns undefined if the percent-encoding is invalid. */
function accessOf(username: string, password: string, tls: boolean): RedisAccess | undefined {
  try {
    return {
      ...(username !== '' && { username: decodeURIComponent(username) }),
      ...(password !== '' && { password: decodeURIComponent(password) }),
      tls,
    }
  } catch {
    return undefined
  }
}
