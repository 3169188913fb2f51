import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Failure } from './failure.ts'

/** How a family of endpoints wraps its answers. The families differ, and clients must not assume one of them. */
export interface Envelope {
  success: (data: unknown, request: FastifyRequest, reply: FastifyReply) => object
  failure: (failure: Failure, request: FastifyRequest, reply: FastifyReply) => object
}

/** `{data, meta}` or `{errors, meta}`. */
export const optionsEnvelope: Envelope = {
  success: (data, request, reply) => ({ data, meta: meta(request, reply) }),
  failure: (failure, request, reply) => ({ errors: errors(failure), meta: meta(request, reply) }),
}

/** `{data, errors, metadata}`, whether it went well or not. */
export const agentsEnvelope: Envelope = {
  success: (data, request, reply) => ({ data, errors: [], metadata: meta(request, reply) }),
  failure: (failure, request, reply) => ({
    data: null,
    errors: errors(failure),
    metadata: meta(request, reply),
  }),
}

/** `{data, links}`. */
export const walletsEnvelope: Envelope = {
  success: (data, request) => ({ data, links: { self: request.url } }),
  failure: (failure) => ({ errors: errors(failure) }),
}

/** The object itself. */
export const bareEnvelope: Envelope = {
  success: (data) => Object(data) as object,
  failure: optionsEnvelope.failure,
}

function errors({ status, code, message, field }: Failure): object[] {
  return [{ status, code, message, ...(field !== undefined && { field }) }]
}

function meta(request: FastifyRequest, reply: FastifyReply): object {
  const endpoint = request.url.split('?', 1)[0]
  return { endpoint, method: request.method, timing: Math.round(reply.elapsedTime) }
}
