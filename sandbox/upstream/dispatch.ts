import type { Connection, Message } from './connection.ts'
import type { Operation } from './operation.ts'
import { accountOperations } from './operations/account.ts'
import { catalogueOperations } from './operations/catalogue.ts'
import { connectionOperations } from './operations/connection.ts'
import { openContractOperations } from './operations/open-contracts.ts'
import { tickOperations } from './operations/ticks.ts'
import { tradingOperations } from './operations/trading.ts'
import { Refusal } from './refusal.ts'

/** Known by name, but not with their fields: what they do cannot be guessed, so the sandbox does not do it. */
const NOT_IMPLEMENTED = [
  'cancel',
  'contract_update',
  'contract_update_history',
  'profit_table',
  'statement',
  'auto_get',
  'auto_list',
  'auto_list_strategies',
  'auto_start',
  'auto_pause',
  'auto_resume',
  'auto_stop',
]

const OPERATIONS: ReadonlyMap<string, Operation> = new Map(
  [
    ...connectionOperations,
    ...catalogueOperations,
    ...tickOperations,
    ...tradingOperations,
    ...openContractOperations,
    ...accountOperations,
    ...NOT_IMPLEMENTED.map(notImplemented),
  ].map((operation) => [operation.name, operation]),
)

/** Carries out one request; whatever is wrong with it becomes its answer. */
export function dispatch(message: Message, connection: Connection): void {
  const operation = operationOf(message)
  if (!operation) {
    return connection.refuse(message, 'error', new Refusal('UnrecognisedRequest', 'Unrecognised request.'))
  }
  try {
    operation.run(message, connection)
  } catch (error) {
    connection.refuse(message, operation.answers, error instanceof Refusal ? error : fault(error))
  }
}

/** A fault of the sandbox itself is told, and does not take everybody's connections down. */
function fault(error: unknown): Refusal {
  process.stderr.write(`${String(error)}\n`)
  return new Refusal('InternalServerError', 'The sandbox has a fault: see its log.')
}

/** The operation is the first key that names one. */
function operationOf(message: Message): Operation | undefined {
  for (const key of Object.keys(message)) {
    const operation = OPERATIONS.get(key)
    if (operation) return operation
  }
  return undefined
}

function notImplemented(name: string): Operation {
  return {
    name,
    answers: name,
    run(_message, { account }) {
      if (!account) throw new Refusal('AuthorizationRequired', 'Please log in.')
      throw new Refusal('NotImplemented', `The sandbox has no ${name}.`)
    },
  }
}
