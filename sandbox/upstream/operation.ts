import { type Static, type TProperties, type TSchema, Type } from 'typebox'
import { Errors } from 'typebox/value'
import type { Account } from './accounts.ts'
import type { Connection, Message } from './connection.ts'
import { Refusal } from './refusal.ts'

/** An operation of the WebSocket API (docs/upstream.md, Messages). */
export interface Operation {
  name: string
  /** The `msg_type` of its responses. */
  responseType: string
  /** @throws Refusal */
  run(message: Message, connection: Connection): void
}

const COMMON = {
  req_id: Type.Optional(Type.Integer()),
  passthrough: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
}

/** The value of an operation's key if the operation has no argument there. */
export const one = Type.Literal(1)
export const subscribe = Type.Optional(Type.Enum([0, 1]))

interface Definition<Properties extends TProperties> {
  name: string
  /** The name by default. */
  responseType?: string
  properties: Properties
}

type Request<Properties extends TProperties> = Static<ReturnType<typeof Type.Object<Properties>>> & Message

/** An operation that is open to every connection. */
export function operation<Properties extends TProperties>(
  definition: Definition<Properties> & {
    run: (request: Request<Properties>, connection: Connection) => void
  },
): Operation {
  const { name, responseType = name, properties, run } = definition
  const schema = Type.Object({ ...properties, ...COMMON }, { additionalProperties: false })
  return {
    name,
    responseType,
    run(message, connection) {
      validate(schema, message)
      run(message as Request<Properties>, connection)
    },
  }
}

/** An operation on a trading account, which requires a socket that was opened with a one-time password. */
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
      // The account is checked before the fields, so that other sockets learn nothing about these.
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
  const missing = errors.flatMap((error) => (error.keyword === 'required' ? error.params.requiredProperties : []))
  const wrong = errors.filter(({ instancePath }) => instancePath !== '')
  const details = Object.fromEntries([
    ...missing.map((name) => [name, 'Missing property.']),
    ...wrong.map(({ instancePath, message }) => [instancePath.slice(1).replaceAll('/', '.'), `${message}.`]),
  ])
  throw invalid(`${Object.keys(details).join(', ')}.`, details)
}

function invalid(reason: string, details: Record<string, unknown>): Refusal {
  return new Refusal('InputValidationFailed', `Input validation failed: ${reason}`, details)
}
