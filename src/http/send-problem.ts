import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Problem } from '../problem.ts'
import { within } from '../time/within.ts'
import { renderProblem } from './problem-pages.ts'

/** Longest wait for the rest of a refused upload. */
const UPLOAD_GRACE_MS = 1000

/** Sends a problem document (RFC 9457), or a page with the same facts for a navigation. */
export function sendProblem(request: FastifyRequest, reply: FastifyReply, problem: Problem): FastifyReply {
  reply.code(problem.status).headers({ 'cache-control': 'no-store', ...problem.headers() })
  const body = renderProblem(request, reply, problem)
  // Closing during an upload resets the connection and loses the response. An untrusted connection may lose it.
  const isTrusted = reply.getHeader('connection') !== 'close'
  if (isTrusted && !reply.raw.shouldKeepAlive && isUploading(request.raw)) {
    // The rest of the upload is discarded meanwhile.
    const ended = once(request.raw.resume(), 'close').catch(() => undefined)
    void within(UPLOAD_GRACE_MS, ended).then(() => void reply.send(body))
    return reply
  }
  return reply.send(body)
}

function isUploading({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
