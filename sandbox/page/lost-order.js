/** An order whose answer was lost: the page finds out what became of it, and says so. Nothing is sent again. */
import { fate } from '/client/orders.js'
import { SocketError } from './bff.js'
import { titleOf } from './contract-view.js'
import { notice } from './notices.js'
import { AREA } from './not-sent.js'
import { session } from './session.js'

const BEFORE_AGAIN = 'Look at your balance before you order again.'
const LOOKING =
  'It is not sent again. This page looks for it on the account as soon as there is a connection, which takes up to 15 ' +
  'seconds: please do not order again before.'
const NOT_SEEN = `nothing of this order is to be seen on the account. It was probably not executed, but that is not certain. ${BEFORE_AGAIN}`
const NOT_FOUND_OUT = `what became of this order could not be found out. ${BEFORE_AGAIN}`
const ambiguous = (count) =>
  `it cannot be told whether one of the ${count} contracts that fit is that of this order. Look at your contracts, too. ${BEFORE_AGAIN}`

/**
 * @param order - { id, type, symbol, price, currency, stake, account }
 * @param error that of the command
 * @param onContract called with the contract of the order, or with each that may be it
 */
export async function findOut(order, error, onContract) {
  const { tag } = session
  const what = `${titleOf(order)}, account ${order.account.id}`
  const action = { label: 'Look again', run: () => findOut(order, error, onContract) }
  const say = (message) => notice({ key: `order ${order.id}`, kind: 'error', area: AREA, ...message })
  say({ text: `It is not known yet whether your order was executed: ${what}. ${LOOKING}` })
  // The next user must not read what concerns this one.
  const isGone = () => session.tag !== tag
  try {
    const found = await fate(error)
    if (isGone()) return
    const contracts = found.is === 'made' ? [found.contract] : (found.candidates ?? [])
    for (const contract of contracts) onContract(contractOf(contract, order))
    if (found.is === 'made') say({ kind: 'success', text: `Your order was executed: ${what}.` })
    else if (found.is === 'ambiguous') say({ text: `${what}: ${ambiguous(contracts.length)}` })
    else say({ text: `${what}: ${NOT_SEEN}`, action })
  } catch (failure) {
    if (!(failure instanceof SocketError)) throw failure
    if (isGone()) return
    // The refusal of the order itself, which has arrived after all.
    if (failure.reply?.msg_type === 'buy') say({ text: `Nothing was bought. ${failure.message}` })
    else say({ text: `${what}: ${NOT_FOUND_OUT}`, action })
  }
}

/** A contract of the account, which may have ended already, as that of an order. */
function contractOf({ contract_id: id, contract_type: type, buy_price, purchase_time }, order) {
  return { ...order, id, type: type ?? order.type, stake: buy_price ?? order.price, at: Number(purchase_time) * 1000 }
}
