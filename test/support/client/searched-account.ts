import type { Test } from 'tap'
import type { OrderSocket } from '../../../client/src/core/base/order-shape.ts'
import { SocketError } from '../../../client/src/core/base/errors.ts'
import type { Fate } from '../../../client/src/orders/search.ts'
import { Search } from '../../../client/src/orders/search.ts'
import { ManualTimers } from '../time/manual-timers.ts'
import { replace } from '../time/replace.ts'
import { account, SENT_AT, TICK } from './sent-order.ts'

type Message = Readonly<Record<string, unknown>>

/** Promises settle. */
export async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

interface Asked {
  readonly message: Message
  readonly resolve: (reply: object) => void
  readonly reject: (error: unknown) => void
}

const noop = (): void => undefined

/** An account on which an order is searched for, whose connection, answers and clocks a test sets. */
export function searchedAccount(t: Test) {
  const clock = { now: SENT_AT, tick: TICK }
  replace(t, Date, 'now', () => clock.now)
  replace(t, performance, 'now', () => clock.tick)
  const timers = new ManualTimers(t)
  const world = {
    state: 'open',
    /** What the socket was given, and whether it was closed. */
    log: [] as unknown[],
    /** The messages without an answer. */
    asked: [] as Asked[],
    hear: noop as (message: Message) => void,
    onStatus: noop,
    onSubscription: noop as (how: 'message' | 'error') => void,
  }
  const socket: OrderSocket = {
    status: () => ({ state: world.state }),
    onStatus: (listener) => {
      world.onStatus = listener
      return () => undefined
    },
    request: (message: Message, { signal, timeoutMs }) => {
      world.log.push([message, timeoutMs, signal !== undefined])
      return new Promise((resolve, reject) => world.asked.push({ message, resolve, reject }))
    },
    subscribe: (message: Message, listener, onError) => {
      world.log.push(['subscribe', message])
      world.onSubscription = (how) => (how === 'error' ? onError(new Error('refused')) : listener({} as never))
      return () => undefined
    },
    listen: (listener) => {
      world.hear = listener
      return () => undefined
    },
    close: () => void world.log.push('closed'),
  }
  const page = account(() => socket)
  const order = page.send(1)
  const error = new SocketError('connection_lost', 'gone', { outcome: 'unknown', order })
  let ended: { fate: Fate } | { error: unknown } | undefined
  const state = async (next: string): Promise<void> => {
    world.state = next
    world.onStatus()
    await turns()
  }
  const hear = async (message: Message): Promise<void> => {
    page.hear(message)
    world.hear(message)
    await turns()
  }
  /** Answers the message of this kind, as the whole page hears it. @param answer nothing: it fails */
  const answer = async (kind: string, answer?: Message, error: unknown = new Error('no answer')): Promise<void> => {
    const at = world.asked.findIndex(({ message }) => kind in message)
    const [asked] = world.asked.splice(at, 1)
    if (at < 0 || !asked) throw new Error(`nobody has asked for ${kind}, but ${JSON.stringify(world.asked)}`)
    if (answer === undefined) asked.reject(error)
    else {
      world.hear({ msg_type: kind, ...answer })
      asked.resolve(answer)
    }
    await turns()
  }
  return {
    ...page,
    clock,
    timers,
    world,
    order,
    state,
    hear,
    answer,
    /** Begins. */
    search: async (signal?: AbortSignal): Promise<void> => {
      const found = new Search(order, error, signal).run()
      found.then(
        (fate) => (ended = { fate }),
        (error: unknown) => (ended = { error }),
      )
      await turns()
    },
    /** What became of it; undefined while it is under way. */
    ended: () => ended,
    /** The kinds of the messages without an answer. */
    asks: (): string[] => world.asked.map(({ message }) => Object.keys(message)[0] ?? ''),
    /** Takes the subscription, tells the time, and answers the first reads with these contracts. */
    reads: async (contracts: readonly Message[] = [], past: readonly Message[] = []): Promise<void> => {
      world.onSubscription('message')
      await answer('time', { time: Math.floor(clock.now / 1000) })
      await answer('portfolio', { portfolio: { contracts } })
      await answer('profit_table', { profit_table: { transactions: past } })
    },
    /** The 15 seconds are over. */
    wait: async (): Promise<void> => {
      timers.run()
      await turns()
    },
  }
}
