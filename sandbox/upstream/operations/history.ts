import { Type } from 'typebox'
import type { Transaction } from '../accounts.ts'
import type { Message } from '../connection.ts'
import type { Contract } from '../contract.ts'
import { accountOperation, one, type Operation } from '../operation.ts'

const description = Type.Optional(Type.Enum([0, 1]))
const offset = Type.Optional(Type.Integer({ minimum: 0 }))
const limitTo = (maximum: number) => Type.Optional(Type.Integer({ minimum: 1, maximum }))

/** What has been on the connection's account: the contracts that have ended, and the transactions. */
export const historyOperations: readonly Operation[] = [
  accountOperation({
    name: 'profit_table',
    properties: {
      profit_table: one,
      contract_type: Type.Optional(Type.Array(Type.String())),
      description,
      limit: limitTo(500),
      offset,
      sort: Type.Optional(Type.Enum(['ASC', 'DESC'])),
    },
    run(request, connection, account) {
      const { contract_type: types, limit = 50, offset = 0, sort = 'DESC' } = request
      const ended = connection.world.contracts
        .endedOf(account)
        .filter(({ terms }) => types === undefined || types.includes(terms.type))
      if (sort === 'DESC') ended.reverse()
      const transactions = ended
        .slice(offset, offset + limit)
        .map((contract) => endedView(contract, request.description))
      connection.respond(request, 'profit_table', { profit_table: { count: transactions.length, transactions } })
    },
  }),
  accountOperation({
    name: 'statement',
    properties: {
      statement: one,
      action_type: Type.Optional(Type.Enum(['buy', 'sell', 'deposit', 'withdrawal'])),
      date_from: Type.Optional(Type.Integer()),
      date_to: Type.Optional(Type.Integer()),
      description,
      limit: limitTo(999),
      offset,
    },
    run(request, connection, account) {
      const { action_type: type, date_from: from = 0, date_to: to = Infinity, limit = 100, offset = 0 } = request
      const transactions = account.history
        .filter((it) => (type === undefined || actionOf(it) === type) && it.time >= from && it.time <= to)
        .toReversed()
        .slice(offset, offset + limit)
        .map((it) => {
          const contract = it.contract && connection.world.contracts.of(account, it.contract.id)
          return statementView(it, contract, request.description)
        })
      connection.respond(request, 'statement', { statement: { count: transactions.length, transactions } })
    },
  }),
]

function endedView(contract: Contract, description: unknown): Message {
  const { id, terms, purchaseTime, shortcode, buyTransactionId, ended } = contract
  return {
    contract_id: id,
    contract_type: terms.type,
    underlying_symbol: terms.instrument.info.code,
    buy_price: terms.stake,
    payout: terms.payout,
    purchase_time: purchaseTime,
    sell_price: ended?.price,
    sell_time: ended?.tick.epoch,
    transaction_id: buyTransactionId,
    ...(description === 1 && { longcode: terms.longcode, shortcode }),
  }
}

function statementView(transaction: Transaction, contract: Contract | undefined, description: unknown): Message {
  const { id, amount, balanceAfter, time } = transaction
  return {
    action_type: actionOf(transaction),
    amount,
    balance_after: balanceAfter,
    transaction_id: id,
    transaction_time: time,
    contract_id: contract?.id ?? null,
    ...(contract && { payout: contract.terms.payout, purchase_time: contract.purchaseTime }),
    ...(contract && description === 1 && { longcode: contract.terms.longcode, shortcode: contract.shortcode }),
  }
}

function actionOf({ action, amount }: Transaction): 'buy' | 'sell' | 'deposit' | 'withdrawal' {
  if (action !== 'reset') return action
  return amount < 0 ? 'withdrawal' : 'deposit'
}
