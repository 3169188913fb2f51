import type { Changing } from '../config/changing.ts'
import { randomUUID } from 'node:crypto'
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import { decoded } from '../config/key-values.ts'
import { loggedAddress, type Requester } from '../http/requester.ts'
import type { OperatorOutcome, RunCommand } from './operator-commands.ts'

/** The options of all routes of operators. */
export interface OperatorRoutesOptions {
  /** The secret of the operators (OPS_TOKEN). */
  readonly token: Changing<string>
  readonly runCommand: RunCommand
  readonly log: FastifyBaseLogger
}

/**
 * The query of a URL with its `?`, which URLSearchParams skips once. It has no characters that must be percent-encoded and have
 * another meaning as they are.
 */
const QUERY = /^[^?#]*(\?[!"$-~]*)$/

/**
 * The parameters of a query, by name; absent where they are not given. It refuses whatever it would have to ignore or to guess: an
 * ignored tag would end all sessions instead of one.
 */
export function readQuery<Name extends string>(
  { url }: FastifyRequest,
  names: readonly Name[],
): Partial<Record<Name, string>> | { readonly error: string } {
  if (!url.includes('?') && !url.includes('#')) return {}
  const query = QUERY.exec(url)?.[1]
  // Otherwise it would be the query of another subject.
  if (query === undefined || decoded(query) === undefined) return { error: 'The query must be percent-encoded UTF-8' }
  const parameters = [...new URLSearchParams(query)]
  const given = parameters.map(([name]) => name)
  if (new Set(given).size < given.length || given.some((name) => !(names as readonly string[]).includes(name))) {
    return {
      error: names.length === 0 ? 'There are no parameters' : `The query may have only ${names.join(' and ')}, once`,
    }
  }
  const empty = parameters.find(([, value]) => value === '')
  if (empty !== undefined) return { error: `${empty[0]} must not be empty` }
  return Object.fromEntries(parameters) as Partial<Record<Name, string>>
}

/** Names the request for the audit, and in the response. */
export function requesterOf({ ip }: FastifyRequest, reply: FastifyReply): Requester {
  const reqId = randomUUID()
  reply.header('x-request-id', reqId)
  return { reqId, client: loggedAddress(ip) }
}

/** Why an operator cannot name a subject. */
export const NO_SUBJECTS = { error: 'Sessions have no subject here: that needs IDENTITY_PATH or OIDC' }

/** Sends why a command was not run: no worker could, or it failed. */
export function notRun(reply: FastifyReply, { is }: OperatorOutcome): FastifyReply {
  if (is === 'noWorker') return unavailable(reply, { error: 'No worker answers, or the server is still starting' })
  return reply.code(500).send({ error: 'Something went wrong here; the log says what' })
}

/** Sends a 503. */
export function unavailable(
  reply: FastifyReply,
  body: { readonly error: string; readonly [name: string]: unknown },
): FastifyReply {
  return reply.code(503).header('retry-after', '1').send(body)
}
