import { statSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config/config.ts'
import { wantsPage } from './html.ts'
import { isPathOf } from './known-paths.ts'

/** The frontend's files, if there are any. */
export interface StaticPages {
  /** Whether a request that found nothing should get index.html, as a page of the frontend's own routing would. */
  isPage(request: FastifyRequest): boolean
  /** Answers with a file, its path relative to STATIC_DIR. False when there is none. */
  sendFile(path: string, reply: FastifyReply): boolean
}

/** Types that become smaller (media types RFC 6838); images and fonts are compressed already. */
const COMPRESSIBLE = /^text\/|[/+](?:json|xml|javascript|wasm|manifest)\b/
/**
 * Names with a hash of the content before the extension, as bundlers make them: hex with letters and digits anywhere, and
 * eight characters of base64url in the folders that bundlers write to. Nothing else is taken for one: a file that changes
 * under a name that was called immutable stays in browsers for a year.
 */
const HASHED = [
  /[.-](?=[a-f]*\d)(?=\d*[a-f])[\da-f]{8,64}\.\w+(?:\.(?:br|gz|map))*$/,
  /(?:^|\/)(?:assets|static|immutable|_astro)\/(?:.*\/)?[^/]*[.-](?=[\w-]*[A-Z\d])(?!\d+\.)[\w-]{8}\.\w+(?:\.(?:br|gz|map))*$/,
]
/** One range or several (RFC 9110 §14.1.2). */
const RANGES = /^bytes=(?:\d+-\d*|-\d+)(?:[ \t]*,[ \t]*(?:\d+-\d*|-\d+))*$/

/** Serves the files of STATIC_DIR where no other route answers. */
export async function registerStaticPages(
  fastify: FastifyInstance,
  config: Config['http'],
): Promise<StaticPages> {
  if (config.staticDir === undefined) return { isPage: () => false, sendFile: () => false }
  const root = resolve(config.staticDir)
  await registerPlugins(fastify, root, config.staticCsp)
  const isFile = (path: string): boolean =>
    statSync(join(root, path), { throwIfNoEntry: false })?.isFile() === true
  const hasIndex = isFile('index.html')
  return {
    isPage: (request) => hasIndex && isNavigation(request) && !isReserved(request.raw.url ?? '/'),
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
    // What is no range is as good as none (RFC 9110 §14.2).
    const { headers } = request.raw
    if (headers.range !== undefined && !areRanges(headers.range)) delete headers.range
    done()
  })
  // Only gzip: a stream of brotli takes megabytes, and anybody may ask for any number. A .br beside a file is served.
  await fastify.register(compress, {
    encodings: ['gzip'],
    customTypes: COMPRESSIBLE,
    globalDecompression: false,
  })
  await fastify.register(files, {
    root,
    dotfiles: 'ignore',
    cacheControl: false,
    preCompressed: true,
    allowedPath: (path) => !isReserved(path),
    setHeaders: (reply, path) => {
      reply.header('content-security-policy', policy)
      reply.header('referrer-policy', 'strict-origin-when-cross-origin')
      const isImmutable = HASHED.some((pattern) => pattern.test(relative(root, path)))
      reply.header('cache-control', isImmutable ? 'max-age=31536000, immutable' : 'no-cache')
    },
  })
}

function isReserved(path: string): boolean {
  return ['/api', '/auth', '/ws'].some((prefix) => isPathOf(path, prefix))
}

/** A service worker that passes a navigation on makes a request of the mode `same-origin` of it. */
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
