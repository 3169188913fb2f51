import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Failure } from './failure.ts'

/** The format of the responses of a family of endpoints. Clients must not assume the same format everywhere. */
export interface Envelope {
  success: (data: unknown, request: FastifyRequest, reply: FastifyReply) => object
  failure: (failure: Failure, request: FastifyRequest, reply: FastifyReply) => object
}

/** `{data, meta}` or `{errors, meta}`. */
export const optionsEnvelope: Envelope = {
  success: (data, request, reply) => ({ data, meta: meta(request, reply) }),
  failure: (failure, request, reply) => ({ errors: errors(failure), meta: meta(request, reply) }),
}

/** `{data, errors, metadata}` for success and failure. */
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

/** The data without an envelope. */
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
