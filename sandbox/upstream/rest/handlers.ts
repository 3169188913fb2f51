import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Static, TSchema } from 'typebox'
import { Check, Errors } from 'typebox/value'
import type { User } from '../users.ts'
import type { World } from '../world.ts'
import { userOf } from './credentials.ts'
import type { Envelope } from './envelopes.ts'
import { Failure, failureFrom } from './failure.ts'

/** Executes a request. @returns the data for the envelope */
export type Handle = (user: User, request: FastifyRequest, reply: FastifyReply) => unknown

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<object>

/** Creates route handlers for a family of endpoints that require a user. */
export function forUsersOf(world: World, envelope: Envelope): (handle: Handle) => Handler {
  return (handle) => async (request, reply) => {
    const user = await userOf(request, world)
    return envelope.success(handle(user, request, reply), request, reply)
  }
}

/** Sends the failures of all routes of this instance in the envelope. */
export function wrapFailures(app: FastifyInstance, envelope: Envelope): void {
  app.setErrorHandler(async (error, request, reply) => {
    const failure = failureFrom(error)
    if (failure.status === 500) process.stderr.write(`${String(error)}\n`)
    return reply.code(failure.status).send(envelope.failure(failure, request, reply))
  })
}

/** The JSON body of a request; `{}` if there is none. It may have unknown fields. @throws Failure 400 */
export function bodyOf<Schema extends TSchema>(schema: Schema, request: FastifyRequest): Static<Schema> {
  const body = parse(typeof request.body === 'string' ? request.body : '')
  if (Check(schema, body)) return body
  const [error] = Errors(schema, body)
  const missing = error?.keyword === 'required' ? error.params.requiredProperties[0] : undefined
  const field = missing ?? error?.instancePath.slice(1).replaceAll('/', '.')
  throw new Failure(400, 'ValidationError', error?.message ?? 'The body is invalid.', field)
}

/** A parameter of the path. */
export function pathParameter(request: FastifyRequest, name: string): string {
  return (request.params as Record<string, string>)[name] ?? ''
}

/** A parameter of the query; the first one if it is repeated. */
export function queryParameter(request: FastifyRequest, name: string): string | undefined {
  return [(request.query as Record<string, string | string[] | undefined>)[name]].flat()[0]
}

export function notFound(resource: string): Failure {
  return new Failure(404, 'NotFound', `There is no such ${resource}.`)
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body === '' ? '{}' : body)
  } catch {
    throw new Failure(400, 'ValidationError', 'The body is not JSON.')
  }
}
