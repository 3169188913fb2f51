import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import type { Guard } from './guard.ts'
import type { StaticPages } from './static-pages.ts'

/** The modules of the browser package that pages without a bundler import, below client/dist. */
const MODULES = ['client.js', 'client/orders.js', 'client/series.js', 'client/sessions.js']

interface Script {
  readonly text: Buffer
  readonly gzipped: Buffer
  readonly etag: string
}

/**
 * `GET /client.js` and `GET /client/<entry>.js`: the browser package, for pages without a bundler (docs/frontends.md). A file of
 * STATIC_DIR wins.
 */
export async function clientScriptRoutes(
  fastify: FastifyInstance,
  { guard, pages }: { readonly guard: Guard; readonly pages: StaticPages },
): Promise<void> {
  for (const module of MODULES) {
    let script: Script | undefined
    fastify.get(`/${module}`, (request, reply) => {
      if (pages.sendFile(module, reply)) return
      // Read when it is first asked for, so that it costs no start-up time.
      script ??= readScript(module)
      guard.allowReading(request, reply)
      const isGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(request.headers['accept-encoding'] ?? '')
      reply.headers({
        etag: script.etag,
        'cache-control': 'no-cache',
        vary: 'Origin, Accept-Encoding',
        'cross-origin-resource-policy': 'same-site',
      })
      // With or without W/, which does not matter here (RFC 9110 §13.1.2).
      if (request.headers['if-none-match']?.includes(script.etag.replace('W/', ''))) return reply.code(304).send()
      if (isGzip) reply.header('content-encoding', 'gzip')
      return reply.type('text/javascript; charset=utf-8').send(isGzip ? script.gzipped : script.text)
    })
  }
}

function readScript(module: string): Script {
  const built = readFileSync(new URL(`../../client/dist/${module}`, import.meta.url), 'utf8')
  // Browsers with open developer tools would ask for the source map, which is for bundlers and is not served.
  const text = Buffer.from(built.replace(/\n\/\/# sourceMappingURL=.*\n$/, '\n'))
  const hash = createHash('sha256').update(text).digest('base64url').slice(0, 22)
  return { text, gzipped: gzipSync(text, { level: 9 }), etag: `W/"${hash}"` }
}
