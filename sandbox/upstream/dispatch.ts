import type { Connection, Message } from './connection.ts'
import type { Operation } from './operation.ts'
import { accountOperations } from './operations/account.ts'
import { catalogueOperations } from './operations/catalogue.ts'
import { connectionOperations } from './operations/connection.ts'
import { historyOperations } from './operations/history.ts'
import { openContractOperations } from './operations/open-contracts.ts'
import { sharingOperation } from './operations/sharing.ts'
import { tickOperations } from './operations/ticks.ts'
import { tradingOperations } from './operations/trading.ts'
import { Refusal } from './refusal.ts'

/** Operations whose names are known but not their fields, so the sandbox cannot implement them. */
const NOT_IMPLEMENTED = [
  'cancel',
  'contract_update',
  'contract_update_history',
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
    ...historyOperations,
    sharingOperation,
    ...NOT_IMPLEMENTED.map(notImplemented),
  ].map((operation) => [operation.name, operation]),
)

/** Executes a request. Every error becomes its response. */
export function dispatch(message: Message, connection: Connection): void {
  const operation = operationOf(message)
  if (!operation) {
    return connection.refuse(message, 'error', new Refusal('UnrecognisedRequest', 'Unrecognised request.'))
  }
  try {
    connection.requests.count(operation.name)
    operation.run(message, connection)
  } catch (error) {
    connection.refuse(message, operation.responseType, error instanceof Refusal ? error : internalError(error))
  }
}

/** Logs an unexpected error. Without this it would end the process and all connections. */
function internalError(error: unknown): Refusal {
  process.stderr.write(`${String(error)}\n`)
  return new Refusal('InternalServerError', 'The sandbox failed; see its log.')
}

/** The operation of the first key that is the name of one. */
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
    responseType: name,
    run(_message, { account }) {
      if (!account) throw new Refusal('AuthorizationRequired', 'Please log in.')
      throw new Refusal('NotImplemented', `The sandbox has no ${name}.`)
    },
  }
}
