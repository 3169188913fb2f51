import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Problem } from '../problem.ts'

/** Answers with a problem document (RFC 9457). */
export function sendProblem(request: FastifyRequest, reply: FastifyReply, problem: Problem): FastifyReply {
  return reply
    .code(problem.status)
    .headers({
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      ...problem.headers(),
    })
    .send(request.method === 'HEAD' ? undefined : Buffer.from(problem.body(request.id)))
}
