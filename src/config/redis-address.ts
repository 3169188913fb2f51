/** A server that Redis or a Sentinel listens on. */
export interface RedisNode {
  readonly host: string
  readonly port: number
}

/** Who we are to the servers, and whether we speak TLS with them. */
export interface RedisAccess {
  readonly username?: string
  readonly password?: string
  readonly tls: boolean
}

/** Where the session store is: what REDIS_URL says. */
export type RedisAddress =
  | { readonly is: 'single'; readonly url: string }
  | { readonly is: 'cluster'; readonly nodes: readonly RedisNode[]; readonly access: RedisAccess }
  | {
      readonly is: 'sentinel'
      readonly nodes: readonly RedisNode[]
      readonly access: RedisAccess
      /** The name the Sentinels know the master by. */
      readonly master: string
    }

const SENTINEL = /^redis(s?)\+sentinel:\/\/(?:([^@/]*)@)?([^@/]+)\/([A-Za-z0-9._-]+)$/
const REDIS_PORT = 6379
const SENTINEL_PORT = 26_379

/** Undefined when it is no address of a session store. */
export function parseRedisUrl(text: string): RedisAddress | undefined {
  const sentinel = SENTINEL.exec(text)
  if (sentinel !== null) return sentinelAddress(sentinel)
  const urls = text.split(',').map((part) => URL.parse(part.trim()))
  const [first] = urls
  if (!first || !urls.every(isRedisUrl)) return undefined
  if (urls.length === 1) return { is: 'single', url: text }
  const access = accessOf(first.username, first.password, first.protocol === 'rediss:')
  // A cluster has one database, and one way in.
  const isUniform = urls.every(
    ({ protocol, pathname }) => protocol === first.protocol && /^\/?0?$/.test(pathname),
  )
  const nodes = urls.map((url) => nodeOf(url, REDIS_PORT))
  return access === undefined || !isUniform ? undefined : { is: 'cluster', nodes, access }
}

function sentinelAddress([, tls, user = '', hosts = '', master = '']: RegExpExecArray):
  | RedisAddress
  | undefined {
  const urls = hosts.split(',').map((host) => URL.parse(`redis://${host.trim()}`))
  const [username = '', ...password] = user.split(':')
  const access = accessOf(username, password.join(':'), tls === 's')
  if (access === undefined || !urls.every(isRedisUrl)) return undefined
  return { is: 'sentinel', nodes: urls.map((url) => nodeOf(url, SENTINEL_PORT)), access, master }
}

function isRedisUrl(url: URL | null): url is URL {
  return url !== null && /^rediss?:$/.test(url.protocol) && url.hostname !== ''
}

function nodeOf({ hostname, port }: URL, fallback: number): RedisNode {
  // An IPv6 address has no brackets outside a URL.
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? fallback : Number(port) }
}

/** Undefined when a `%` stands for nothing. */
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
