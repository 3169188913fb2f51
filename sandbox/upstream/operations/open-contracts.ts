import { Type } from 'typebox'
import type { Connection, Message } from '../connection.ts'
import type { Contract } from '../contract.ts'
import { accountOperation, one, type Operation, subscribe } from '../operation.ts'
import { Refusal } from '../refusal.ts'

const NAME = 'proposal_open_contract'

/** The contracts of the connection's account. */
export const openContractOperations: readonly Operation[] = [
  accountOperation({
    name: NAME,
    properties: { proposal_open_contract: one, contract_id: Type.Optional(Type.Integer()), subscribe },
    run(request, connection, account) {
      const { contracts } = connection.world
      const { contract_id: id } = request
      const contract = id === undefined ? undefined : contracts.of(account, id)
      if (id !== undefined && !contract) throw new Refusal('ContractNotFound', `There is no contract ${id}.`)
      const shown = contract ? [contract] : contracts.openOf(account)
      if (shown.length === 0) return connection.respond(request, NAME, { [NAME]: {} })
      if (request.subscribe === 1) return shown.forEach((it) => streamContract(request, connection, it))
      for (const it of shown) connection.respond(request, NAME, { [NAME]: it.view() })
    },
  }),
  accountOperation({
    name: 'portfolio',
    properties: { portfolio: one },
    run(request, connection, account) {
      const contracts = connection.world.contracts.openOf(account).map(portfolioView)
      connection.respond(request, 'portfolio', { portfolio: { contracts } })
    },
  }),
]

/** Sends a contract now and after every change. The stream ends with the contract. */
export function streamContract(request: Message, connection: Connection, contract: Contract): void {
  const subscription = connection.subscriptions.open(NAME, `contract ${contract.id}`)
  const send = (): void => {
    const view = { ...contract.view(), id: subscription.id }
    connection.respond(request, NAME, { [NAME]: view }, subscription.id)
    if (contract.status !== 'open') connection.subscriptions.forget(subscription.id)
  }
  subscription.onEnd(contract.changes.add(send))
  send()
}

function portfolioView(contract: Contract): Message {
  const { terms } = contract
  return {
    contract_id: contract.id,
    contract_type: terms.type,
    underlying_symbol: terms.instrument.info.code,
    currency: terms.currency,
    buy_price: terms.stake,
    payout: terms.payout,
    purchase_time: contract.purchaseTime,
    date_start: contract.purchaseTime,
    expiry_time: contract.expiryTime,
    longcode: terms.longcode,
    shortcode: contract.shortcode,
    transaction_id: contract.buyTransactionId,
  }
}
