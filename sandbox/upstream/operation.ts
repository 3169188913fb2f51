import { type Static, type TProperties, type TSchema, Type } from 'typebox'
import { Errors } from 'typebox/value'
import type { Account } from './accounts.ts'
import type { Connection, Message } from './connection.ts'
import { Refusal } from './refusal.ts'

/** One operation of the WebSocket surface (docs/upstream.md, Messages). */
export interface Operation {
  name: string
  /** The `msg_type` of its answers. */
  answers: string
  /** @throws Refusal */
  run(message: Message, connection: Connection): void
}

const COMMON = {
  req_id: Type.Optional(Type.Integer()),
  passthrough: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
}

/** `1` where an operation has no argument of its own. */
export const one = Type.Literal(1)
export const subscribe = Type.Optional(Type.Enum([0, 1]))

interface Definition<Properties extends TProperties> {
  name: string
  /** Where it differs from the name. */
  answers?: string
  properties: Properties
}

type Request<Properties extends TProperties> = Static<ReturnType<typeof Type.Object<Properties>>> & Message

/** An operation that needs no log-in. */
export function operation<Properties extends TProperties>(
  definition: Definition<Properties> & {
    run: (request: Request<Properties>, connection: Connection) => void
  },
): Operation {
  const { name, answers = name, properties, run } = definition
  const schema = Type.Object({ ...properties, ...COMMON }, { additionalProperties: false })
  return {
    name,
    answers,
    run(message, connection) {
      validate(schema, message)
      run(message as Request<Properties>, connection)
    },
  }
}

/** An operation on a trading account, so one that only a socket opened with an OTP can carry out. */
export function accountOperation<Properties extends TProperties>(
  definition: Definition<Properties> & {
    run: (request: Request<Properties>, connection: Connection, account: Account) => void
  },
): Operation {
  const { run, ...rest } = definition
  const validated = operation({
    ...rest,
    run: (request, connection) => run(request, connection, accountOf(connection)),
  })
  return {
    ...validated,
    run(message, connection) {
      // First of all: what a stranger may not do, a stranger is not told how to do.
      accountOf(connection)
      validated.run(message, connection)
    },
  }
}

function accountOf({ account }: Connection): Account {
  if (!account) throw new Refusal('AuthorizationRequired', 'Please log in.')
  return account
}

function validate(schema: TSchema, message: Message): void {
  const errors = Errors(schema, message)
  if (errors.length === 0) return
  const unknown = errors.flatMap((error) =>
    error.keyword === 'additionalProperties' ? error.params.additionalProperties : [],
  )
  if (unknown.length > 0) throw invalid(`Properties not allowed: ${unknown.join(', ')}.`, {})
  const missing = errors.flatMap((error) =>
    error.keyword === 'required' ? error.params.requiredProperties : [],
  )
  const wrong = errors.filter(({ instancePath }) => instancePath !== '')
  const details = Object.fromEntries([
    ...missing.map((name) => [name, 'Missing property.']),
    ...wrong.map(({ instancePath, message }) => [instancePath.slice(1).replaceAll('/', '.'), `${message}.`]),
  ])
  throw invalid(`${Object.keys(details).join(', ')}.`, details)
}

function invalid(what: string, details: Record<string, unknown>): Refusal {
  return new Refusal('InputValidationFailed', `Input validation failed: ${what}`, details)
}
