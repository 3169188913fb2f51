import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Problem } from '../problem.ts'

/** Answers with a problem document (RFC 9457). */
export function sendProblem(request: FastifyRequest, reply: FastifyReply, problem: Problem): FastifyReply {
  return reply
    .code(problem.status)
    .headers({ 'cache-control': 'no-store', ...problem.headers() })
    .type('application/problem+json')
    .send(request.method === 'HEAD' ? '' : problem.body(request.id))
}
