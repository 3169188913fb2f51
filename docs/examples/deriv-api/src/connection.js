import DerivAPIBasic from '@deriv/deriv-api/dist/DerivAPIBasic.js'

/** The server closes with these when coming back is useless: no session, no scope, no such account. */
const FINAL = [4401, 4403, 4404]
const NOT_SOON = [1009, 1011, 4408, 4429]

/**
 * Keeps a socket of the server connected: `/ws/public` or `/ws/trading/<account>`.
 * @param use gets a new API for each connection, subscribes there, and forgets the one before
 * @param onEnd gets the code of an end that is final
 */
export function keepConnected(path, use, onEnd) {
  let failures = 0
  let socket
  const open = () => {
    socket = new WebSocket(path)
    const api = new DerivAPIBasic({ connection: socket })
    let [heardAt, asked] = [performance.now(), 0]
    const lost = ({ code, reason }) => {
      clearInterval(watch)
      socket.removeEventListener('close', lost)
      if (FINAL.includes(code)) return onEnd(code)
      const told = Number(/;retry_after=(\d+)/.exec(reason)?.[1] ?? 0) * 1000
      const limit = Math.min(30_000, 1000 * 2 ** failures++)
      setTimeout(open, Math.max(told, NOT_SOON.includes(code) ? 10_000 : 0) + Math.random() * limit)
    }
    const watch = setInterval(() => {
      if (performance.now() - heardAt < 10_000) return
      if (socket.readyState === WebSocket.OPEN) api.send({ ping: 1 }).catch(() => undefined)
      if (++asked < 3) return // Counted, because a hidden page looks once a minute, and its connection may well be alive.
      socket.close()
      lost({ code: 1006, reason: '' })
    }, 5000)
    socket.addEventListener('close', lost)
    // A socket that is refused opens, too, so only a message says that it works.
    socket.addEventListener('message', () => ([heardAt, asked, failures] = [performance.now(), 0, 0]))
    socket.addEventListener('open', () => use(api))
  }
  // A page that the browser keeps for Back would keep its sockets, and its user may have logged out.
  addEventListener('pagehide', () => socket.close())
  addEventListener('pageshow', ({ persisted }) => {
    document.documentElement.hidden = persisted
    if (persisted) location.reload()
  })
  open()
}

/** Sends a `buy`, `sell` or `cancel` now or never, and once. After `unknown`, look at the account before you order again. */
export async function order(api, message) {
  const fail = (outcome) => Object.assign(new Error(outcome), { outcome })
  const { connection } = api
  // The library would keep the order until the connection opens, and a dead connection until the network is back.
  const isOpen = () => connection.readyState === WebSocket.OPEN
  const answers = () => api.send({ ping: 1 }).then(isOpen, isOpen)
  const isAlive = isOpen() && (await Promise.race([answers(), new Promise((resolve) => setTimeout(resolve, 1000))]))
  if (!isAlive) throw fail('not_sent')
  return new Promise((resolve, reject) => {
    const isLost = () => reject(fail('unknown'))
    connection.addEventListener('close', isLost)
    setTimeout(isLost, 30_000)
    api.send(message).then(resolve, reject)
  })
}
