import { createHash, randomUUID, timingSafeEqual } from 'node:crypto'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { network } from '../http/client-address.ts'
import { loggedAddress } from '../http/requester.ts'
import { auditBounded } from '../telemetry/bounded-audit.ts'
import type { AdminOrder, AdminOutcome, CarryOut } from './session-admin.ts'

/** What the routes need. */
export interface OperatorRoutesOptions {
  /** The secret of the operators (OPS_TOKEN). */
  readonly token: string
  readonly carryOut: CarryOut
  readonly log: FastifyBaseLogger
}

const SUBJECT_RULE = 'The query must have one subject, percent-encoded, of 1 to 256 characters'
/** The query of a URL, without characters that must be percent-encoded and have another meaning as they are. */
const QUERY = /^[^?#]*\?([!"$-~]*)$/
/** As the log and `GET /sessions` name sessions. */
const TAG = /^[\w-]{10}$/
const PARAMETERS: Readonly<Record<AdminOrder['is'], readonly string[]>> = { list: ['subject'], end: ['subject', 'tag'] }
const SECOND = 1000

/** `GET` and `DELETE /sessions` of the ops listener (docs/operating/sessions.md, Ending the sessions of a user). */
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
  ops.addHook('onRequest', async ({ headers }, reply) => {
    if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0) return
    // A tag in a body would be ignored, and all sessions would end instead of one.
    return reply.code(400).send({ error: 'The request must have no body: subject and tag belong in the query' })
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
        const asked = readQuery(request, is)
        if ('error' in asked) return reply.code(400).send(asked)
        const requester = { reqId: randomUUID(), client: loggedAddress(request.ip) }
        reply.header('x-request-id', requester.reqId)
        return respond(reply, await options.carryOut({ is, ...asked, requester }))
      },
    })
  }
}

function respond(reply: FastifyReply, outcome: AdminOutcome): FastifyReply {
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
      return unavailable(reply, 'The session store is unavailable')
    case 'noWorker':
      return unavailable(reply, 'No worker answers, or the server is still starting')
    case 'failed':
      return reply.code(500).send({ error: 'Something went wrong here; the log says what' })
  }
}

function unavailable(reply: FastifyReply, error: string): FastifyReply {
  return reply.code(503).header('retry-after', '1').send({ error })
}

/** Refuses whatever it would have to ignore or to guess: an ignored tag would end all sessions instead of one. */
function readQuery(
  { url }: FastifyRequest,
  is: AdminOrder['is'],
): Pick<AdminOrder, 'subject' | 'tag'> | { readonly error: string } {
  const query = QUERY.exec(url)?.[1] ?? ''
  if (!isEncoded(query)) return { error: 'The query must be percent-encoded UTF-8' }
  const parameters = [...new URLSearchParams(query)]
  const { subject = '', tag } = Object.fromEntries<string | undefined>(parameters)
  const names = parameters.map(([name]) => name)
  if (new Set(names).size < names.length || names.some((name) => !PARAMETERS[is].includes(name))) {
    return { error: `The query may have only ${PARAMETERS[is].join(' and ')}, once` }
  }
  if (subject === '') return { error: SUBJECT_RULE }
  if (tag !== undefined && !TAG.test(tag)) return { error: 'The tag must be that of a session, of 10 characters' }
  return { subject, ...(tag !== undefined && { tag }) }
}

/** Whether each escape stands for UTF-8. URLSearchParams would put a replacement character, and so another subject. */
function isEncoded(query: string): boolean {
  try {
    decodeURIComponent(query)
    return true
  } catch {
    return false
  }
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Compares in constant time, whatever the lengths. */
function tokenCheck(token: string): (authorization: string | undefined) => boolean {
  const expected = digest(token)
  return (authorization = '') => {
    const [scheme = '', given = ''] = /^([A-Za-z]+) (.*)$/.exec(authorization)?.slice(1) ?? []
    return timingSafeEqual(digest(given), expected) && scheme.toLowerCase() === 'bearer'
  }
}
