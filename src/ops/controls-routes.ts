import { setImmediate as turn } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { NOTICE, ORDERS, subjectOf, type Control } from '../controls/control-document.ts'
import { parsedObject } from '../http/parsed-object.ts'
import { isSubject } from '../sessions/index.ts'
import { isUnambiguous } from '../sockets/json-text.ts'
import { sharedNow } from '../time/shared-now.ts'
import { MAX_SUBJECTS, type ControlChange, type ControlsOutcome } from './controls-admin.ts'
import type { OperatorOutcome } from './operator-commands.ts'
import {
  NO_SUBJECTS,
  notRun,
  readQuery,
  requesterOf,
  unavailable,
  type OperatorRoutesOptions,
} from './operator-requests.ts'

const MAX_BODY_BYTES = 16_384
const MAX_CHARACTERS = 500
/** These could make a text look like another one, or like the page's own. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u
const SECOND = 1000

/** A member of a body: what it must be, and whether it is. */
type Rule = readonly [must: string, isValid: (value: unknown) => boolean]

const RULES = {
  paused: ['true; DELETE lifts the pause', (value) => value === true],
  subject: ['a string of 1 to 256 characters', (value) => typeof value === 'string' && isSubject(value)],
  message: [
    `a string of 1 to ${MAX_CHARACTERS} characters, not only spaces, with no control characters and none that change the direction of writing`,
    isMessage,
  ],
  until: ['a time in the future, in whole seconds since 1970', (value) => Number.isSafeInteger(value)],
  replace: ['true, and only for a pause of all users', (value) => value === true],
  closing: ['true or false', (value) => typeof value === 'boolean'],
} as const satisfies Record<string, Rule>

type Member = keyof typeof RULES

/** A body in which each member is as its rule has it. */
interface Body {
  readonly subject?: string
  readonly message?: string
  /** Epoch seconds. */
  readonly until?: number
  readonly closing?: boolean
  readonly replace?: true
}

/** `/controls` of the ops listener (docs/operating/controls.md). */
export async function controlsRoutes(ops: FastifyInstance, { runCommand }: OperatorRoutesOptions): Promise<void> {
  ops.removeAllContentTypeParsers()
  ops.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES }, (_request, body, done) =>
    done(null, body),
  )
  const change = async (request: FastifyRequest, reply: FastifyReply, asked: ControlChange | Wrong) => {
    if ('error' in asked) return reply.code(400).send(asked)
    const askedAt = sharedNow()
    const isWanted = async (): Promise<boolean> => asked.value !== null || !(await hasLeft(request))
    if (!(await isWanted())) return reply.hijack()
    const requester = requesterOf(request, reply)
    return respond(reply, await runCommand({ is: 'change', change: asked, requester, askedAt }, isWanted))
  }
  ops.get('/controls', { exposeHeadRoute: false }, async (request, reply) => {
    const asked = readQuery(request, [])
    if ('error' in asked) return reply.code(400).send(asked)
    return respond(reply, await runCommand({ is: 'show', requester: requesterOf(request, reply) }))
  })
  ops.put('/controls/orders', (request, reply) => change(request, reply, ordersIn(request)))
  ops.put('/controls/notice', (request, reply) => change(request, reply, noticeIn(request)))
  ops.delete('/controls/orders', (request, reply) => change(request, reply, liftIn(request)))
  ops.delete('/controls/notice', (request, reply) => {
    const asked = readQuery(request, [])
    return change(request, reply, 'error' in asked ? asked : { control: 'notice', value: null })
  })
}

/**
 * Whether an operator waits no more. A request may have waited here while this process stood still, and orders may have been
 * paused again since: what lifts a pause must not come late.
 */
async function hasLeft({ raw: { socket } }: FastifyRequest): Promise<boolean> {
  // The end of a connection is read in the turn of the event loop after that of what was sent on it.
  await turn()
  await turn()
  return socket.readableEnded || socket.destroyed
}

/** Why a request is refused. */
interface Wrong {
  readonly error: string
}

function ordersIn(request: FastifyRequest): ControlChange | Wrong {
  const body = bodyOf(request, ['paused'], ['subject', 'message', 'until', 'closing', 'replace'])
  if ('error' in body) return body
  const { subject, message, closing = true, replace } = body
  // What was set for others may be lost with it, so nobody may order afterwards.
  if (replace && subject !== undefined) return { error: `replace must be ${RULES.replace[0]}` }
  const value = { ...(message !== undefined && { message }), ...endOf(body), closing }
  return { control: 'orders', ...(subject !== undefined && { subject }), value, ...(replace && { replace }) }
}

function liftIn(request: FastifyRequest): ControlChange | Wrong {
  const asked = readQuery(request, ['subject'])
  if ('error' in asked) return asked
  const wrong = asked.subject === undefined ? undefined : wrongIn('subject', asked.subject)
  return wrong ?? { control: 'orders', ...asked, value: null }
}

function noticeIn(request: FastifyRequest): ControlChange | Wrong {
  const body = bodyOf(request, ['message'], ['until'])
  if ('error' in body) return body
  const { message = '' } = body
  return { control: 'notice', value: { message, ...endOf(body) } }
}

function endOf({ until }: Body): { readonly until?: number } {
  return until === undefined ? {} : { until: until * SECOND }
}

/** A body, or what is wrong with it. Nothing is ignored: a misspelt `subject` would pause the orders of all. */
function bodyOf(request: FastifyRequest, required: readonly Member[], optional: readonly Member[]): Body | Wrong {
  const asked = readQuery(request, [])
  if ('error' in asked) return asked
  const body = parsed(request.body)
  if (body === undefined) return { error: 'The body must be a JSON object in UTF-8, with no member twice' }
  const missing = required.find((name) => !Object.hasOwn(body, name))
  if (missing !== undefined) return { error: `The body must have ${missing}` }
  for (const [name, value] of Object.entries(body)) {
    const member = [...required, ...optional].find((each) => each === name)
    if (member === undefined) return { error: `The body may have only ${[...required, ...optional].join(', ')}` }
    const wrong = wrongIn(member, value)
    if (wrong !== undefined) return wrong
  }
  return body
}

function wrongIn(member: Member, value: unknown): Wrong | undefined {
  const [must, isValid] = RULES[member]
  return isValid(value) ? undefined : { error: `${member} must be ${must}` }
}

function parsed(body: unknown): Record<string, unknown> | undefined {
  if (!Buffer.isBuffer(body)) return undefined
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
    const value = parsedObject(text)
    return value !== undefined && isUnambiguous(text, value) ? value : undefined
  } catch {
    return undefined
  }
}

function isMessage(value: unknown): boolean {
  if (typeof value !== 'string' || value.trim() === '' || !value.isWellFormed()) return false
  return Array.from(value).length <= MAX_CHARACTERS && !UNPRINTABLE.test(value)
}

function respond(reply: FastifyReply, outcome: OperatorOutcome): FastifyReply {
  switch (outcome.is) {
    case 'shown':
      return sendControls(reply, outcome)
    case 'changed': {
      const { version, isShared } = outcome
      if (isShared) return reply.send({ version })
      const error = `The session store is unavailable, its replicas do not confirm, or this instance cannot read the controls: only this instance obeys, until the others can learn of it`
      return unavailable(reply, { error, version })
    }
    case 'wrongUntil':
      return reply.code(400).send({ error: `until must be ${RULES.until[0]}, before the year 10000` })
    case 'tooMany':
      return reply.code(400).send({ error: `The orders of at most ${MAX_SUBJECTS} subjects can be paused` })
    case 'overtaken':
      return reply.code(409).send({ error: 'Nothing was lifted: it was set anew meanwhile. Look, and repeat this' })
    case 'noSubjects':
      return reply.code(400).send(NO_SUBJECTS)
    default:
      return notRun(reply, outcome)
  }
}

function sendControls(
  reply: FastifyReply,
  { instance, version, controls, reports }: Extract<ControlsOutcome, { is: 'shown' }>,
): FastifyReply {
  const named = new Map(controls)
  const shown = (name: string): object | null => shape(named.get(name))
  const body = {
    version,
    orders: shown(ORDERS),
    subjects: controls.flatMap(([name, control]) => {
      const subject = subjectOf(name)
      return subject === undefined ? [] : [{ subject, ...shape(control) }]
    }),
    notice: shown(NOTICE),
    instance,
  }
  if (reports === undefined) {
    return unavailable(reply, { error: 'The session store is unavailable: this is what this instance obeys', ...body })
  }
  const instances = reports.map((each) => ({
    instance: each.instance,
    version: each.version,
    seen_at: Math.floor(each.seenAt / SECOND),
  }))
  return reply.send({ ...body, instances })
}

function shape(control: Control | undefined): object | null {
  if (control === undefined || control.value === null) return null
  const { version, at, value } = control
  const { message, until } = value
  return {
    ...('closing' in value && { paused: true, closing: value.closing }),
    message,
    ...(until !== undefined && { until: Math.floor(until / SECOND) }),
    version,
    set_at: Math.floor(at / SECOND),
  }
}
