import { SESSION_KEYS } from '../../src/store/keys.ts'
import { until } from '../support/time/until.ts'
import { ACCOUNTS, TRADING } from '../support/user.ts'
import type { Scene } from './scene.ts'

/** Somebody with open sockets whose own commands never suffer. */
export interface Bystander {
  readonly sessionKey: string
  /** The port of the master that has the session. */
  readonly port: number
  /** Reads, orders, and says something on a socket that has been open all the time. @returns what has failed */
  readonly goAbout: () => Promise<string | undefined>
}

/** One for each master, logged in at the instance that suffers. */
export async function bystandersOf(scene: Scene): Promise<Bystander[]> {
  const found = new Map<number, Bystander>()
  while (found.size < scene.masters.length) {
    const before = await scene.sessionKeys()
    const actor = await scene.user()
    const place = (await scene.stored.sessions()).find(([key]) => !before.includes(key))
    if (place === undefined || found.has(place[1])) {
      await actor.logOut()
      continue
    }
    const [sessionKey, port] = place
    const [trading, session] = [actor.socket(TRADING), actor.socket('/ws/session')]
    await Promise.all([trading.opened(), session.opened()])
    const says = async (): Promise<boolean> => {
      const said = trading.received.length
      trading.socket.send('{"ping":1}')
      return (await trading.count(said + 1)).length > said
    }
    found.set(port, {
      sessionKey,
      port,
      async goAbout() {
        const [read, order, isHeard] = await Promise.all([actor.call('GET', ACCOUNTS), actor.order(), says()])
        if (read.status !== 200) return `a call gets ${read.text.slice(0, 60)}`
        if (order.status !== 200 && !order.text.includes('orders_paused'))
          return `an order gets ${order.text.slice(0, 60)}`
        if (session.socket.readyState !== session.socket.OPEN)
          return `a session socket is closed: ${session.texts.at(-1)}`
        return isHeard ? undefined : 'a trading socket is closed'
      },
    })
  }
  await until(async () => (await scene.sessionKeys()).length === found.size, 'nobody else is logged in')
  return [...found.values()]
}

/** Whether a command is about the session of one of them. */
export const isOfBystander = (bystanders: readonly Bystander[], text: string): boolean =>
  bystanders.some(({ sessionKey }) => text.includes(sessionKey.slice(SESSION_KEYS.prefix.length)))
