import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { derived, type Changing } from '../config/changing.ts'
import { loggedAddress } from '../http/requester.ts'
import { network } from '../limits/networks.ts'
import { auditBounded } from '../telemetry/audit/audit.ts'
import { controlsRoutes } from './controls-routes.ts'
import type { OperatorOutcome } from './operator-commands.ts'
import {
  NO_SUBJECTS,
  notRun,
  readQuery,
  requesterOf,
  unavailable,
  type OperatorRoutesOptions,
} from './operator-requests.ts'
import type { SubjectCommand } from './session-admin.ts'

const SUBJECT_RULE = 'The query must have one subject, percent-encoded, of 1 to 256 characters'
/** As the log and `GET /sessions` name sessions. */
const TAG = /^[\w-]{10}$/
const PARAMETERS: Readonly<Record<SubjectCommand['is'], readonly ('subject' | 'tag')[]>> = {
  list: ['subject'],
  end: ['subject', 'tag'],
}
const SECOND = 1000

/** `GET` and `DELETE /sessions` of the ops listener (docs/operating/sessions.md, Ending the sessions of a user), and `/controls`. */
export async function operatorRoutes(ops: FastifyInstance, options: OperatorRoutesOptions): Promise<void> {
  const isToken = tokenCheck(options.token)
  ops.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    if (isToken(request.headers.authorization)) return
    auditBounded(options.log, 'ops_refused', { client: loggedAddress(request.ip) }, network(request.ip))
    return reply
      .code(401)
      .header('www-authenticate', 'Bearer')
      .send({ error: 'The header Authorization must be: Bearer, then OPS_TOKEN' })
  })
  // A body is read as JSON, whatever its type is said to be, and a request without one may have a type.
  ops.addHook('onRequest', async ({ raw }) => void delete raw.headers['content-type'])
  ops.addHook('onRequest', async ({ method, headers }, reply) => {
    if (method === 'PUT') return
    if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0) return
    // A tag in a body would be ignored, and all sessions would end instead of one.
    return reply.code(400).send({ error: 'The request must have no body: what it concerns belongs in the query' })
  })

  for (const [method, is] of [
    ['GET', 'list'],
    ['DELETE', 'end'],
  ] as const) {
    ops.route({
      method,
      url: '/sessions',
      exposeHeadRoute: false,
      handler: async (request, reply) => {
        const asked = readAsked(request, is)
        if ('error' in asked) return reply.code(400).send(asked)
        const requester = requesterOf(request, reply)
        return respond(reply, await options.runCommand({ is, ...asked, requester }))
      },
    })
  }
  await ops.register(controlsRoutes, options)
}

function respond(reply: FastifyReply, outcome: OperatorOutcome): FastifyReply {
  switch (outcome.is) {
    case 'listed':
      return reply.send({
        sessions: outcome.sessions.map(({ tag, startedAt, lastUsedAt, client }) => ({
          tag,
          started_at: Math.floor(startedAt / SECOND),
          ...(lastUsedAt !== undefined && { last_used_at: Math.floor(lastUsedAt / SECOND) }),
          client,
        })),
      })
    case 'ended':
      return reply.send({ ended: outcome.count })
    case 'noSubject':
      return reply.code(400).send({ error: SUBJECT_RULE })
    case 'storeDown':
      return unavailable(reply, { error: 'The session store is unavailable' })
    case 'noSubjects':
      return reply.code(404).send(NO_SUBJECTS)
    default:
      return notRun(reply, outcome)
  }
}

/** The subject and the tag, or what is wrong. */
function readAsked(
  request: FastifyRequest,
  is: SubjectCommand['is'],
): Pick<SubjectCommand, 'subject' | 'tag'> | { readonly error: string } {
  const asked = readQuery(request, PARAMETERS[is])
  if ('error' in asked) return asked
  const { subject, tag } = asked
  if (subject === undefined) return { error: SUBJECT_RULE }
  if (tag !== undefined && !TAG.test(tag)) return { error: 'The tag must be that of a session, of 10 characters' }
  return { subject, ...(tag !== undefined && { tag }) }
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Compares in constant time, whatever the lengths. */
function tokenCheck(token: Changing<string>): (authorization: string | undefined) => boolean {
  const expected = derived(token, digest)
  return (authorization = '') => {
    const [scheme = '', given = ''] = /^([A-Za-z]+) (.*)$/.exec(authorization)?.slice(1) ?? []
    return timingSafeEqual(digest(given), expected()) && scheme.toLowerCase() === 'bearer'
  }
}
