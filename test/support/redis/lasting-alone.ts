import type { Test } from 'tap'
import { Connection } from '../../../src/store/links/connection.ts'
import { LastingConnection } from '../../../src/store/links/lasting-connection.ts'
import { HeldTimers } from '../time/held-timers.ts'

const [OPEN_MS, ASK_MS, SILENCE_MS] = [2500, 1000, 3000]
export const SERVER = { name: 'one', options: { socket: { host: '127.0.0.1', port: 1 } }, owns: () => true }

type Purpose = ConstructorParameters<typeof LastingConnection>[0]

/** A connection to a server without a server: it opens and answers as a test says. */
export function connectionOf(t: Test, changes: Partial<Purpose> = {}) {
  const log: unknown[] = []
  const world = {
    made: [] as Connection[],
    open: async (): Promise<void> => undefined,
    reply: async (): Promise<unknown> => 'PONG',
    closing: async (): Promise<void> => undefined,
    isReady: true,
  }
  // The pauses are then as short as they may be.
  t.intercept(Math, 'random', { value: () => 1 })
  const timers = {
    open: new HeldTimers(t, 'setTimeout', OPEN_MS),
    ask: new HeldTimers(t, 'setTimeout', ASK_MS),
    silence: new HeldTimers(t, 'setTimeout', SILENCE_MS),
    grace: new HeldTimers(t, 'setTimeout', 777),
  }
  t.intercept(Connection.prototype, 'connect', {
    async value(this: Connection) {
      log.push('connect')
      world.made.push(this)
      await world.open()
      return this
    },
  })
  t.intercept(Connection.prototype, 'destroy', { value: () => log.push('destroy') })
  t.intercept(Connection.prototype, 'close', { value: async () => (log.push('close'), world.closing()) })
  t.intercept(Connection.prototype, 'ping', { value: async () => (log.push('ping'), world.reply()) })
  t.intercept(Connection.prototype, 'isReady', { get: () => world.isReady })
  const lasting = new LastingConnection({
    find: async () => (log.push('find'), SERVER),
    up: ({ name }) => void log.push(['up', name]),
    lost: (...args) => void log.push(['lost', ...args]),
    ...changes,
  })
  // The pauses between tries keep no process alive.
  const alive = setTimeout(() => undefined, 5000)
  t.teardown(() => clearTimeout(alive))
  t.teardown(() => lasting.close())
  return { lasting, world, timers, logged: () => log.splice(0), log }
}
