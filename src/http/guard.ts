import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config/config.ts'
import { isLoopbackHost, isNearHost } from '../config/hostname.ts'
import { MinuteCounts } from '../limits/minute-counts.ts'
import { Problem } from '../problem.ts'
import { BoundedLines } from '../telemetry/bounded-lines.ts'
import type { Metrics } from '../telemetry/metrics.ts'

const ALLOWED_HEADERS =
  'accept, accept-language, content-type, if-none-match, if-modified-since, idempotency-key, traceparent, tracestate, x-csrf'
const EXPOSED_HEADERS =
  'content-disposition, etag, idempotency-replayed, last-modified, retry-after, x-request-id, ratelimit, ratelimit-policy, ratelimit-limit, ratelimit-remaining, ratelimit-reset, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset'
const PREFLIGHT_SECONDS = '600'

/** Longer Origins are logged truncated. */
const MAX_ORIGIN_LENGTH = 128
/** Refused Origins that are remembered as logged. A client may make up any number of them. */
const MAX_ORIGINS = 1000
/** Limits how many different Origins are logged. */
const refusedOrigins = new BoundedLines({ atOnce: 10, everyMs: 60_000 })

/** Decides which requests may call: the CSRF rule, the Origin allow-list, Fetch Metadata and CORS. */
export class Guard {
  readonly #origins: ReadonlySet<string>
  readonly #publicHostname: string
  readonly #isProduction: boolean
  readonly #log: FastifyBaseLogger
  readonly #metrics: Pick<Metrics, 'refusedOrigins'>
  readonly #refused = new MinuteCounts(MAX_ORIGINS)

  constructor(
    config: Pick<Config['http'], 'frontendOrigins' | 'production' | 'publicUrl'>,
    log: FastifyBaseLogger,
    metrics: Pick<Metrics, 'refusedOrigins'>,
  ) {
    this.#origins = config.frontendOrigins
    this.#publicHostname = new URL(config.publicUrl).hostname
    this.#isProduction = config.production
    this.#log = log
    this.#metrics = metrics
  }

  /** Whether the Origin is on the allow-list. A missing one and `null` never are. */
  isListed(origin: string | undefined): boolean {
    return origin !== undefined && this.#origins.has(origin)
  }

  /** Admits only scripts of allowed pages, and clients that are not browsers. @throws Problem csrf_rejected */
  requireScript(request: FastifyRequest): void {
    const { origin, 'x-csrf': csrf, 'sec-fetch-site': site } = request.headers
    if (csrf !== '1') {
      throw new Problem('csrf_rejected', { detail: 'Send the header X-CSRF: 1 with this request.' })
    }
    if (this.isListed(origin)) return
    const isSameOrigin = site === 'same-origin' && (origin === undefined || origin === 'null')
    const isNoBrowser = site === undefined && origin === undefined
    if (!isSameOrigin && !isNoBrowser) {
      throw this.refusal('csrf_rejected', request, 'This page may not call this server.')
    }
  }

  /**
   * The problem for a request whose Origin is not listed. The usual cause is a wrong PUBLIC_URL or FRONTEND_ORIGINS, so
   * the log names the Origin and the allowed ones, and outside production the problem does as well.
   */
  refusal(
    code: 'csrf_rejected' | 'origin_rejected',
    { headers: { origin = 'none' } }: FastifyRequest,
    detail?: string,
  ): Problem {
    this.#note(origin)
    if (this.#isProduction) return new Problem(code, { detail })
    const allowed = [...this.#origins].join(', ')
    return new Problem(code, {
      detail: `The Origin of the request is ${origin}; allowed are ${allowed} (FRONTEND_ORIGINS, PUBLIC_URL).`,
    })
  }

  /**
   * The problem for a socket of a page whose Origin is not listed, to which browsers show no response to a handshake. So it asks
   * without one, and may read this problem, which names no origin.
   */
  readableRefusal(origin = 'none'): Problem {
    this.#note(origin)
    return new Problem('origin_rejected', { headers: { 'access-control-allow-origin': '*' } })
  }

  /** Counts a refused Origin, and logs it: each once a minute, ten of them at most. The others are counted. */
  #note(origin: string): void {
    this.#metrics.refusedOrigins.inc()
    const logged = origin.slice(0, MAX_ORIGIN_LENGTH).replaceAll(/[^\x20-\x7e]/g, '?')
    if (!this.#refused.allows(logged, 1)) return
    const allowed = [...this.#origins]
    // A page that is being developed runs on another port or name of this machine, or in its network.
    const isNear = !this.#isProduction && logged === origin && isNearHost(URL.parse(origin)?.hostname)
    const open = isNear ? this.#allowedNameOf(origin) : undefined
    const setting = isNear && open === undefined ? `FRONTEND_ORIGINS=${[...allowed, origin].join()}` : undefined
    const write = (count: number): void =>
      this.#log.warn(
        { origin: logged, allowed, open, setting, ...(count > 1 && { count }) },
        'an origin is not allowed',
      )
    refusedOrigins.add(this.#log, { id: 'origin', write })
  }

  /**
   * The allowed origin of a page that was opened under another name of this machine than that of PUBLIC_URL. To list the origin would
   * not do: cookies belong to a name, so no login would work there.
   */
  #allowedNameOf(origin: string): string | undefined {
    const page = new URL(origin)
    if (!isLoopbackHost(page.hostname)) return undefined
    page.hostname = this.#publicHostname
    return this.isListed(page.origin) ? page.origin : undefined
  }

  /** Admits only top-level navigations (Fetch Metadata). @throws Problem navigation_required */
  requireNavigation(request: FastifyRequest): void {
    const { 'sec-fetch-dest': destination = 'document', 'sec-purpose': purpose = '' } = request.headers
    if (destination !== 'document' || String(purpose).includes('prefetch')) {
      throw new Problem('navigation_required')
    }
  }

  /** Allows a listed origin to read the response (CORS). */
  allowReading(request: FastifyRequest, reply: FastifyReply): void {
    const { origin } = request.headers
    if (origin === undefined || !this.isListed(origin)) return
    reply.header('access-control-allow-origin', origin)
    reply.header('access-control-allow-credentials', 'true')
    reply.header('access-control-expose-headers', EXPOSED_HEADERS)
  }

  /** Adds a route that responds to preflights of `url`, so that they never go upstream. */
  addPreflight(fastify: FastifyInstance, url: string, methods: readonly string[]): void {
    fastify.options(url, (request, reply) => {
      // An OPTIONS request that is no preflight is a wrong method.
      if (request.headers['access-control-request-method'] === undefined) return reply.callNotFound()
      if (!this.isListed(request.headers.origin)) throw this.refusal('origin_rejected', request)
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
