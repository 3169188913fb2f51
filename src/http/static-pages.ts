import { ReadStream, statSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config/config.ts'
import type { Problem } from '../problem.ts'
import { wantsPage } from './html.ts'
import { breakOff } from './http-socket.ts'
import { isPathOf, RESERVED_PREFIXES } from './known-paths.ts'

/** The frontend's files, if STATIC_DIR is set. */
export interface StaticPages {
  /**
   * Whether an unmatched request should get index.html, because the frontend itself may route it to a page.
   * @param problem what it would get otherwise. A navigation may be a HEAD, and its path that of a route without HEAD.
   */
  isPage(request: FastifyRequest, problem: Problem): boolean
  /** Whether the path of a request is that of a file that is served. */
  isFile(path: string): boolean
  /**
   * Sends a file, whose path is relative to STATIC_DIR. Returns false if there is none. A handler must not return the reply after it:
   * fastify would wait for its end a second time, with so many listeners that Node.js warns of a leak.
   */
  sendFile(path: string, reply: FastifyReply): boolean
}

/** Media types (RFC 6838) that compression makes smaller. Images and fonts are compressed already. */
const COMPRESSIBLE = /^text\/|[/+](?:json|xml|javascript|wasm|manifest)\b/
/**
 * File names with a content hash before the extension: anywhere, hex with both letters and digits; in the folders that
 * bundlers write to, eight characters of base64url. Fonts and images there may have names such as `Inter-SemiBold.woff2`, so
 * a hash of theirs must have capitals, small letters and a digit before a letter. The patterns are strict, because a file
 * that changes under an immutable name stays stale in browsers for a year.
 */
const HASHED = [
  /[.-](?=[a-f]*\d)(?=\d*[a-f])[\da-f]{8,64}\.\w+(?:\.(?:br|gz|map))*$/,
  /(?:^|\/)(?:assets|static|immutable|_astro)\/(?:.*\/)?[^/]*[.-](?=[\w-]*[A-Z\d])(?!\d+\.)[\w-]{8}\.(?:m?js|css)(?:\.(?:br|gz|map))*$/,
  /(?:^|\/)(?:assets|static|immutable|_astro)\/(?:.*\/)?[^/]*[.-](?=[\w-]*[A-Z])(?=[\w-]*[a-z])(?=[\w-]*\d[\w-]*[A-Za-z])[\w-]{8}\.\w+(?:\.(?:br|gz|map))*$/,
]
/** One or several ranges (RFC 9110 §14.1.2). */
const RANGES = /^bytes=(?:\d+-\d*|-\d+)(?:[ \t]*,[ \t]*(?:\d+-\d*|-\d+))*$/

/** Serves the files of STATIC_DIR where no other route matches. */
export async function registerStaticPages(fastify: FastifyInstance, config: Config['http']): Promise<StaticPages> {
  if (config.staticDir === undefined) return { isPage: () => false, isFile: () => false, sendFile: () => false }
  const root = resolve(config.staticDir)
  await registerPlugins(fastify, root, config.staticCsp)
  const isFile = (path: string): boolean => {
    try {
      return statSync(join(root, path), { throwIfNoEntry: false })?.isFile() === true
    } catch {
      // No file can be there: the name is too long, or a folder is closed.
      return false
    }
  }
  return {
    isPage: (request, { code }) =>
      code === 'not_found' && isNavigation(request) && !isReserved(request.raw.url ?? '/') && isFile('index.html'),
    isFile(path) {
      const decoded = decodedPath(path)
      if (decoded === undefined || !isServed(decoded)) return false
      return isFile(decoded.endsWith('/') ? `${decoded}index.html` : decoded)
    },
    sendFile(path, reply) {
      const found = [path, `${path}/index.html`].find(isFile)
      if (found !== undefined) void reply.sendFile(found)
      return found !== undefined
    },
  }
}

async function registerPlugins(fastify: FastifyInstance, root: string, policy: string): Promise<void> {
  const [{ default: compress }, { default: files }] = await Promise.all([
    import('@fastify/compress'),
    import('@fastify/static'),
  ])
  fastify.addHook('onRequest', (request, _reply, done) => {
    // An invalid Range header is ignored (RFC 9110 §14.2).
    const { headers } = request.raw
    if (headers.range !== undefined && !areRanges(headers.range)) delete headers.range
    done()
  })
  // Before it is compressed.
  fastify.addHook('onSend', (_request, reply, payload, done) => {
    done(null, payload instanceof ReadStream ? withLength(reply, payload) : payload)
  })
  // Only gzip, since a brotli stream takes megabytes and a client may request any number. Existing .br files are served.
  await fastify.register(compress, {
    encodings: ['gzip'],
    customTypes: COMPRESSIBLE,
    globalDecompression: false,
  })
  await fastify.register(files, {
    root,
    dotfiles: 'allow',
    cacheControl: false,
    preCompressed: true,
    allowedPath: isServed,
    setHeaders: (reply, path) => {
      reply.header('content-security-policy', policy)
      reply.header('referrer-policy', 'strict-origin-when-cross-origin')
      const isImmutable = HASHED.some((pattern) => pattern.test(relative(root, path)))
      reply.header('cache-control', isImmutable ? 'max-age=31536000, immutable' : 'no-cache')
    },
  })
}

/**
 * Sees to it that a file fills the length that its response has announced. It may have changed since: a client would wait for the
 * rest, or take what follows for the next response of its connection.
 */
function withLength(reply: FastifyReply, file: ReadStream): ReadStream | string {
  const length = Number(reply.getHeader('content-length'))
  // Of an empty file one byte would be read, if it has one by now.
  if (length === 0) {
    file.destroy()
    return ''
  }
  return file.once('end', () => {
    if (file.bytesRead < length) breakOff(reply.raw)
  })
}

function isServed(path: string): boolean {
  return !isReserved(path) && !isHidden(path)
}

/** The path with its escapes resolved; undefined if it is malformed. */
function decodedPath(path: string): string | undefined {
  try {
    const decoded = decodeURIComponent(path)
    return decoded.includes('\0') ? undefined : decoded
  } catch {
    return undefined
  }
}

function isReserved(path: string): boolean {
  return RESERVED_PREFIXES.some((prefix) => isPathOf(path, prefix))
}

/** Whether a path leads to a hidden file or folder, such as `.git`. Only `/.well-known/` is public (RFC 8615). */
function isHidden(path: string): boolean {
  return /(?:^|\/)\./.test(path.replace(/^\/\.well-known\//, ''))
}

/** A service worker that forwards a navigation sends it with the mode `same-origin`. */
function isNavigation({ method, headers }: FastifyRequest): boolean {
  const { 'sec-fetch-mode': mode = 'navigate', accept } = headers
  const isSafe = method === 'GET' || method === 'HEAD'
  return isSafe && wantsPage(accept) && (mode === 'navigate' || mode === 'same-origin')
}

function areRanges(header: string): boolean {
  return RANGES.test(header) && header.slice('bytes='.length).split(',').every(isAscending)
}

function isAscending(range: string): boolean {
  const [first = '', last = ''] = range.split('-')
  return first.trim() === '' || last === '' || Number(first) <= Number(last)
}
