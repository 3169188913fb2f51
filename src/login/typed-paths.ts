import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Metrics } from '../telemetry/metrics.ts'

/** The paths of links that people type, and that codes have in capitals, since a QR code is smaller with them. */
const TYPED = ['/auth/login', '/auth/signup', '/auth/signup/check'] as const
const LONGEST = '/auth/signup/check'.length

/**
 * Redirects a GET or HEAD whose path is one of these but for its letters. The query stays as it came.
 * @returns false if the path is none of them
 */
export function redirectTyped(
  { method, raw }: FastifyRequest,
  reply: FastifyReply,
  { publicUrl, metrics }: { readonly publicUrl: string; readonly metrics: Pick<Metrics, 'typedPaths'> },
): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const [path = '', ...query] = (raw.url ?? '').split('?')
  const typed = path.length > LONGEST ? undefined : TYPED.find((each) => each === path.toLowerCase())
  if (typed === undefined || typed === path) return false
  metrics.typedPaths.inc({ path: typed })
  const address = [publicUrl + typed, ...query].join('?')
  reply.header('cache-control', 'no-store').header('referrer-policy', 'no-referrer').redirect(address, 308)
  return true
}
