import type { FastifyReply, FastifyRequest } from 'fastify'
import { isLoopbackHost } from '../config/hostname.ts'
import type { RawQuery } from '../http/server.ts'
import { BoundedLines } from '../telemetry/bounded-lines.ts'

const otherNames = new BoundedLines({ atOnce: 1, everyMs: 3_600_000 })
/** Longer names are truncated in the log. */
const MAX_NAME_LENGTH = 128

/**
 * Sees to a login that is begun under another name of this server than that of PUBLIC_URL, where the callback will be: cookies belong
 * to a name, so it would end with `state_mismatch`. Between two loopback names the browser is redirected. In production a warning
 * names both, once an hour: many proxies rewrite Host, and the browser may well have used the right name.
 * @returns whether the browser was redirected
 */
export function redirectToPublicName(
  request: FastifyRequest<{ Querystring: RawQuery }>,
  reply: FastifyReply,
  publicUrl: string,
): boolean {
  const wanted = new URL(publicUrl)
  const used = URL.parse(`${wanted.protocol}//${request.host}`)
  if (used === null || used.hostname === wanted.hostname) return false
  if (isLoopbackHost(wanted.hostname)) {
    // Another port is that of a proxy's target. It may rewrite Host each time, and a redirect would not end.
    if (!isLoopbackHost(used.hostname) || used.port !== wanted.port) return false
    const { text } = request.query
    reply.redirect(`${publicUrl}${String(request.routeOptions.url)}${text === '' ? '' : `?${text}`}`, 303)
    return true
  }
  const host = used.hostname.slice(0, MAX_NAME_LENGTH)
  const write = (count: number): void =>
    request.log.warn(
      { host, publicUrl, ...(count > 1 && { count }) },
      'A login began under another name than that of PUBLIC_URL, and fails unless a proxy rewrites Host',
    )
  otherNames.add(request.log, { id: 'name', write })
  return false
}
