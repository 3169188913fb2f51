import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import { Problem } from '../problem.ts'

const ALLOWED_HEADERS =
  'accept, accept-language, content-type, if-none-match, if-modified-since, idempotency-key, traceparent, tracestate, x-csrf'
const EXPOSED_HEADERS =
  'content-disposition, etag, last-modified, retry-after, x-request-id, ratelimit, ratelimit-policy, ratelimit-limit, ratelimit-remaining, ratelimit-reset, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset'
const PREFLIGHT_SECONDS = '600'

/** Who may call: the CSRF rule, Origin, Fetch Metadata and CORS of CONTRACT 4 in one place. */
export class Guard {
  readonly #origins: ReadonlySet<string>

  constructor(config: Pick<Config['http'], 'frontendOrigins'>) {
    this.#origins = config.frontendOrigins
  }

  /** True for an Origin of the allow-list; `null`, foreign and missing ones are not. */
  isListed(origin: string | undefined): boolean {
    return origin !== undefined && this.#origins.has(origin)
  }

  /** For calls from scripts. @throws Problem csrf_rejected */
  requireScript(request: FastifyRequest): void {
    const { origin, 'x-csrf': csrf, 'sec-fetch-site': site } = request.headers
    if (csrf !== '1') {
      throw new Problem('csrf_rejected', { detail: 'Send the header X-CSRF: 1 with this request.' })
    }
    if (this.isListed(origin)) return
    const isSameOrigin = site === 'same-origin' && (origin === undefined || origin === 'null')
    const isNoBrowser = site === undefined && origin === undefined
    if (!isSameOrigin && !isNoBrowser) {
      throw new Problem('csrf_rejected', { detail: 'This page may not call this server.' })
    }
  }

  /** For addresses that only a top-level navigation may open (Fetch Metadata). @throws Problem navigation_required */
  requireNavigation(request: FastifyRequest): void {
    const { 'sec-fetch-dest': destination = 'document', 'sec-purpose': purpose = '' } = request.headers
    if (destination !== 'document' || String(purpose).includes('prefetch')) {
      throw new Problem('navigation_required')
    }
  }

  /** Lets a listed origin read the answer. */
  allowReading(request: FastifyRequest, reply: FastifyReply): void {
    const { origin } = request.headers
    if (origin === undefined || !this.isListed(origin)) return
    reply.header('access-control-allow-origin', origin)
    reply.header('access-control-allow-credentials', 'true')
    reply.header('access-control-expose-headers', EXPOSED_HEADERS)
  }

  /** Answers preflights of `url` here: they never go upstream. */
  addPreflight(fastify: FastifyInstance, url: string, methods: readonly string[]): void {
    fastify.options(url, (request, reply) => {
      // Any other OPTIONS is a wrong method.
      if (request.headers['access-control-request-method'] === undefined) return reply.callNotFound()
      if (!this.isListed(request.headers.origin)) throw new Problem('origin_rejected')
      this.allowReading(request, reply)
      return reply
        .code(204)
        .headers({
          vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers',
          'access-control-allow-methods': methods.join(', '),
          'access-control-allow-headers': ALLOWED_HEADERS,
          'access-control-max-age': PREFLIGHT_SECONDS,
          'cache-control': 'no-store',
        })
        .send()
    })
  }
}
