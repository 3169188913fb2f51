import { randomUUID } from 'node:crypto'
import { Type } from 'typebox'
import type { Connection, Message } from '../connection.ts'
import { accountOperation, operation, type Operation, subscribe } from '../operation.ts'
import { purchaseView } from '../contract.ts'
import { Refusal } from '../refusal.ts'
import { contractProperties, proposalView, type Terms, termsOf } from '../terms.ts'
import { streamContract } from './open-contracts.ts'

/** Proposals, purchases and sales. */
export const tradingOperations: readonly Operation[] = [
  operation({
    name: 'proposal',
    properties: { proposal: Type.Literal(1), ...contractProperties, subscribe },
    run(request, connection) {
      const { market } = connection.world
      const terms = termsOf(request, market)
      if (request.subscribe === 1) return streamProposal(request, connection, terms)
      const id = randomUUID()
      connection.proposals.set(id, terms)
      connection.respond(request, 'proposal', { proposal: proposalView(terms, id, market.tickMs) })
    },
  }),
  accountOperation({
    name: 'buy',
    properties: {
      // The id of a proposal, or 1 together with `parameters`.
      buy: Type.Union([Type.String(), Type.Literal(1)]),
      price: Type.Number({ minimum: 0 }),
      parameters: Type.Optional(Type.Object(contractProperties, { additionalProperties: false })),
      subscribe,
    },
    run(request, connection, account) {
      const terms =
        request.parameters === undefined
          ? proposalOf(connection, String(request.buy))
          : termsOf(request.parameters, connection.world.market)
      if (terms.stake > request.price) throw priceMoved(request.price, terms.stake)
      const { contracts, ids, watch } = connection.world
      const contract = contracts.buy(account, terms)
      watch?.bought?.(request, ids.outside(contract.id))
      connection.proposals.delete(String(request.buy))
      connection.respond(request, 'buy', { buy: purchaseView(contract) })
      if (request.subscribe === 1) streamContract(request, connection, contract)
    },
  }),
  accountOperation({
    name: 'sell',
    properties: { sell: Type.Integer(), price: Type.Number({ minimum: 0 }) },
    run(request, connection, account) {
      const contract = connection.world.contracts.of(account, request.sell)
      if (contract?.status !== 'open')
        throw new Refusal('InvalidSellContractProposal', 'Unknown contract sell proposal.')
      if (contract.bidPrice < request.price) throw priceMoved(request.price, contract.bidPrice)
      const { price, transactionId } = contract.sell()
      connection.respond(request, 'sell', {
        sell: {
          contract_id: contract.id,
          balance_after: account.balance,
          sold_for: price,
          reference_id: contract.buyTransactionId,
          transaction_id: transactionId,
        },
      })
    },
  }),
]

/** Sends the terms with every tick until the stream is forgotten or the proposal is bought. */
function streamProposal(request: Message, connection: Connection, terms: Terms): void {
  const { market } = connection.world
  const { instrument, type, stake, payout, length } = terms
  const subject = `${instrument.info.code} ${type} ${stake}/${payout} ${JSON.stringify(length)}`
  const subscription = connection.subscriptions.open('proposal', subject)
  const id = randomUUID()
  connection.proposals.set(id, terms)
  const send = (): void => {
    if (!connection.proposals.has(id)) return void connection.subscriptions.forget(subscription.id)
    const proposal = proposalView(terms, id, market.tickMs)
    connection.respond(request, 'proposal', { proposal }, subscription.id)
  }
  send()
  subscription.onEnd(instrument.ticks.add(send))
}

function proposalOf({ proposals }: Connection, id: string): Terms {
  const terms = proposals.get(id)
  if (!terms) throw new Refusal('InvalidContractProposal', 'Unknown contract proposal.')
  return terms
}

function priceMoved(requested: number, actual: number): Refusal {
  const message = `The underlying market has moved: you asked for ${requested}, the price is ${actual}.`
  return new Refusal('PriceMoved', message)
}
