import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { checkerOf, type Schema } from './document.ts'

/** The source of the document, for tests that parse it themselves. */
export const SOURCE = readFileSync(new URL('../../../docs/asyncapi.yaml', import.meta.url), 'utf8')

interface Reference {
  readonly $ref: string
}

/** What the tests read of docs/asyncapi.yaml. */
export interface AsyncApiDocument {
  readonly servers: { readonly bff: { readonly host: string; readonly protocol: string } }
  readonly channels: Readonly<Record<string, { readonly address: string }>>
  readonly operations: Readonly<
    Record<
      string,
      { readonly messages: readonly Reference[]; readonly reply?: { readonly messages: readonly Reference[] } }
    >
  >
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
  readonly 'x-close-codes': readonly { readonly code: number; readonly reason?: string }[]
}

export const asyncApi = parse(SOURCE) as AsyncApiDocument

/**
 * Checks messages of the trading service, and the requests that they echo, against what the document says of their operation.
 * @returns what is wrong
 */
export function messageChecker(): (operation: string, message: Readonly<Record<string, unknown>>) => readonly string[] {
  const check = checkerOf(asyncApi)
  const schemaOf = ({ $ref }: Reference): Schema | undefined =>
    asyncApi.components.schemas[$ref.split('/').at(-1) ?? '']
  return (operation, message) => {
    const described = asyncApi.operations[`trading.${operation}`]
    const request = message['echo_req'] as Readonly<Record<string, unknown>>
    const [asked, ...others] = described?.messages.map(schemaOf) ?? []
    const answers = described?.reply?.messages.map(schemaOf) ?? []
    const wrong = answers.map((schema) => check(schema, message))
    return [
      ...others.map(() => 'there are several requests'),
      ...check(asked, request).map((fault) => `request ${fault}`),
      ...unknownMembers(asked, request).map((member) => `request has ${member}`),
      ...(wrong.some((faults) => faults.length === 0) ? [] : (wrong[0] ?? [])).map((fault) => `answer ${fault}`),
    ]
  }
}

/** The kinds of message that the trading service sends, as which the document describes a message. */
export function messageKinds(): (message: Readonly<Record<string, unknown>>) => readonly string[] {
  const check = checkerOf(asyncApi)
  const { TicksHistoryAnswer: _several, ...schemas } = asyncApi.components.schemas
  const kinds = Object.entries(schemas).filter(([name]) => /.Answer$|^Refusal$/.test(name))
  return (message) => kinds.flatMap(([name, schema]) => (check(schema, message).length === 0 ? [name] : []))
}

/** The members of a request that its schema does not have: upstream would refuse them. */
function unknownMembers(schema: Schema | undefined, request: object): readonly string[] {
  return Object.keys(request).filter((member) => !membersOf(schema).has(member))
}

function membersOf(schema: Schema | undefined): ReadonlySet<string> {
  const {
    $ref,
    allOf = [],
    properties = {},
  } = (schema ?? {}) as {
    $ref?: string
    allOf?: readonly Schema[]
    properties?: object
  }
  const parent = $ref && asyncApi.components.schemas[$ref.split('/').at(-1) ?? '']
  const parts = parent ? [parent, ...allOf] : allOf
  return new Set([...parts.flatMap((part) => Array.from(membersOf(part))), ...Object.keys(properties)])
}
