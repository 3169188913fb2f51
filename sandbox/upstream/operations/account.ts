import type { Transaction } from '../accounts.ts'
import type { Message } from '../connection.ts'
import { accountOperation, one, type Operation, subscribe } from '../operation.ts'

/** The balance and the transactions of the connection's account. */
export const accountOperations: readonly Operation[] = [
  accountOperation({
    name: 'balance',
    properties: { balance: one, subscribe },
    run(request, connection, account) {
      const { id: loginid, currency } = account
      const balanceNow = (): Message => ({ balance: account.balance, currency, loginid })
      if (request.subscribe !== 1) return connection.respond(request, 'balance', { balance: balanceNow() })
      const subscription = connection.subscriptions.open('balance', 'balance')
      const send = (): void => {
        const balance = { ...balanceNow(), id: subscription.id }
        connection.respond(request, 'balance', { balance }, subscription.id)
      }
      send()
      subscription.onEnd(account.transactions.add(send))
    },
  }),
  accountOperation({
    name: 'transaction',
    properties: { transaction: one, subscribe: one },
    run(request, connection, account) {
      const subscription = connection.subscriptions.open('transaction', 'transaction')
      const send = (view: Message): void => {
        const transaction = { ...view, id: subscription.id }
        connection.respond(request, 'transaction', { transaction }, subscription.id)
      }
      send({})
      subscription.onEnd(
        account.transactions.add((transaction) => send(transactionView(transaction, account.currency))),
      )
    },
  }),
]

function transactionView(transaction: Transaction, currency: string): Message {
  const { id, action, amount, balanceAfter, time, contract } = transaction
  return {
    transaction_id: id,
    transaction_time: time,
    action,
    amount,
    balance: balanceAfter,
    currency,
    ...(contract && {
      contract_id: contract.id,
      longcode: contract.longcode,
      underlying_symbol: contract.symbol,
    }),
  }
}
