import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Metrics } from '../telemetry/metrics.ts'

/** The paths of links that people type. QR codes have them in capitals, which make a code smaller. */
const TYPED = ['/auth/login', '/auth/signup', '/auth/signup/check'] as const
const LONGEST = '/auth/signup/check/'.length

/**
 * Redirects a GET or HEAD whose path differs from one of these in case, with or without a slash at the end. The query stays as it
 * came.
 * @returns false if the path is none of them
 */
export function redirectTyped(
  { method, raw }: FastifyRequest,
  reply: FastifyReply,
  { publicUrl, metrics }: { readonly publicUrl: string; readonly metrics: Pick<Metrics, 'typedPaths'> },
): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const [path = '', ...query] = (raw.url ?? '').split('?')
  if (path.length > LONGEST) return false
  const lower = path.toLowerCase()
  const typed = TYPED.find((each) => each === lower || `${each}/` === lower)
  if (typed === undefined || lower === path) return false
  metrics.typedPaths.inc({ path: typed })
  const address = [publicUrl + typed, ...query].join('?')
  reply.header('cache-control', 'no-store').header('referrer-policy', 'no-referrer').redirect(address, 308)
  return true
}
