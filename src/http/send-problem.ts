import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Problem } from '../problem.ts'
import { renderProblem } from './problem-pages.ts'

/** Longest wait for the rest of an upload that was refused. */
const UPLOAD_GRACE_MS = 1000

/** Answers with a problem document (RFC 9457); who navigates gets a page with the same facts. */
export function sendProblem(request: FastifyRequest, reply: FastifyReply, problem: Problem): FastifyReply {
  reply.code(problem.status).headers({ 'cache-control': 'no-store', ...problem.headers() })
  const body = renderProblem(request, reply, problem)
  // Hanging up on an upload resets the connection, and the answer with it. On one that is not trusted, let it.
  const isTrusted = reply.getHeader('connection') !== 'close'
  if (isTrusted && !reply.raw.shouldKeepAlive && isUploading(request.raw)) {
    afterUpload(request.raw, () => void reply.send(body))
    return reply
  }
  return reply.send(body)
}

function isUploading({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Drops the rest of an upload, then goes on; at the latest after a while. */
function afterUpload(request: IncomingMessage, then: () => void): void {
  const goOn = (): void => {
    clearTimeout(timer)
    request.off('close', goOn)
    then()
  }
  const timer = setTimeout(goOn, UPLOAD_GRACE_MS)
  request.once('close', goOn)
  request.resume()
}
