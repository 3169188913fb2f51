import type { FastifyReply, FastifyRequest } from 'fastify'
import { isLoopbackHost } from '../config/hostname.ts'
import type { Guard } from '../http/guard.ts'
import type { RawQuery } from '../http/server.ts'
import { BoundedLines } from '../telemetry/bounded-lines.ts'
import { Window } from '../time/window.ts'

type StartRequest = FastifyRequest<{ Querystring: RawQuery }>

const otherNames = new BoundedLines({ atOnce: 1, everyMs: 3_600_000 })
/** Longer names are truncated in the log. */
const MAX_NAME_LENGTH = 128
/**
 * So many starts are redirected in so many ms. Behind a proxy that rewrites Host each of them comes back under the same name: the
 * login begins before the browser gives up, which it does after 20 redirects.
 */
const MAX_REDIRECTS = 10
const REDIRECTS_MS = 10_000

/**
 * Sees to a login that is begun under another name of this server than that of PUBLIC_URL, where the callback will be: cookies belong
 * to a name, so it would end with `state_mismatch`. Between two loopback names the browser is redirected. In production, and beyond
 * {@link MAX_REDIRECTS}, a warning has both names, once an hour: many proxies rewrite Host, and the browser may well have used the
 * right name.
 * @returns a function that says whether it has redirected the browser
 */
export function redirectorTo(
  publicUrl: string,
  guard: Pick<Guard, 'isListed'>,
): (request: StartRequest, reply: FastifyReply) => boolean {
  const wanted = new URL(publicUrl)
  const redirects = new Window(REDIRECTS_MS)
  const isPage = ({ origin }: URL): boolean => origin === wanted.origin || guard.isListed(origin)
  return (request, reply) => {
    const used = URL.parse(`${wanted.protocol}//${request.host}`)
    if (used === null || used.hostname === wanted.hostname) return false
    if (isLoopbackHost(wanted.hostname)) {
      // Without the header it is a script or an old browser. A script may well keep its cookies by another rule.
      if (request.headers['sec-fetch-mode'] !== 'navigate') return false
      const renamed = new URL(used)
      renamed.hostname = wanted.hostname
      // A port that no page has is that of a proxy's target, which may rewrite Host.
      if (isLoopbackHost(used.hostname) && isPage(renamed) && redirects.allows(MAX_REDIRECTS)) {
        const { text } = request.query
        reply.redirect(`${publicUrl}${String(request.routeOptions.url)}${text === '' ? '' : `?${text}`}`, 303)
        return true
      }
    }
    warn(request, used.hostname, publicUrl)
    return false
  }
}

function warn({ log }: StartRequest, hostname: string, publicUrl: string): void {
  const host = hostname.slice(0, MAX_NAME_LENGTH)
  const write = (count: number): void =>
    log.warn(
      { host, publicUrl, ...(count > 1 && { count }) },
      'A login began under another name than that of PUBLIC_URL, and fails unless a proxy rewrites Host',
    )
  otherNames.add(log, { id: 'name', write })
}
