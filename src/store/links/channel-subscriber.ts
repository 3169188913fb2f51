import type { RedisClientOptions } from '@redis/client'
import { beforeDeadline } from '../../time/deadline.ts'
import { CONNECTION, newConnection, SOCKET, type Connection } from './connection.ts'
import { delay, reconnectMs, type MasterServer, type RedisLink } from './redis-link.ts'

/** A server that accepts connections but does not reply is dropped after this time. */
const OPEN_MS = 2500
/** A connection that is silent for this long is dropped; it is pinged every second. */
const MAX_SILENCE_MS = 4000

/** What a subscription reports. */
export interface SubscriberEvents {
  message(text: string): void
  /** The subscription is in place, perhaps again. Messages before that were lost. */
  up(): void
}

/**
 * Subscribes to a channel over a connection of its own. Every node of a Cluster receives what any node publishes, and a
 * replica what its master publishes.
 */
export class ChannelSubscriber {
  readonly #channel: string
  readonly #link: Pick<RedisLink, 'anyServer' | 'masterNames'>
  readonly #events: SubscriberEvents
  #connection: Connection | undefined
  #isUp = false
  #isClosed = false

  constructor(channel: string, link: Pick<RedisLink, 'anyServer' | 'masterNames'>, events: SubscriberEvents) {
    this.#channel = channel
    this.#link = link
    this.#events = events
    void this.#run()
  }

  /** Whether messages arrive at present. */
  get isUp(): boolean {
    return this.#isUp
  }

  close(): void {
    this.#isClosed = true
    if (this.#connection?.isOpen) this.#connection.destroy()
  }

  async #run(): Promise<void> {
    for (let tries = 0; !this.#isClosed; tries++) {
      // Another one each time, so that the subscriber moves on from one that is gone.
      const node = this.#link.anyServer()
      if (node !== undefined && (await this.#serveFrom(node))) tries = 0
      if (!this.#isClosed) await delay(reconnectMs(tries))
    }
  }

  /** Stays subscribed until the connection ends. Returns whether it ever was subscribed. */
  async #serveFrom({ name, options }: MasterServer): Promise<boolean> {
    const socket = { ...options.socket, ...SOCKET, socketTimeout: MAX_SILENCE_MS, reconnectStrategy: false }
    const connection = newConnection({ ...options, ...CONNECTION, socket } as RedisClientOptions)
    const ended = new Promise<void>((resolve) => connection.on('error', () => resolve()).on('end', resolve))
    // A server that is no master any more may have been taken out of the Cluster, and then hears nothing.
    connection.on('ping-interval', () => {
      if (!this.#link.masterNames().has(name)) connection.destroy()
    })
    this.#connection = connection
    let hasServed = false
    try {
      const subscribed = connection
        .connect()
        .then(() => connection.subscribe(this.#channel, (text) => this.#events.message(text)))
      await beforeDeadline(OPEN_MS, subscribed)
      this.#isUp = hasServed = true
      if (!this.#isClosed) this.#events.up()
      await ended
    } catch {
      // The next node may do better.
    }
    this.#isUp = false
    if (connection.isOpen) connection.destroy()
    return hasServed
  }
}
