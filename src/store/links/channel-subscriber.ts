import { LastingConnection } from './lasting-connection.ts'
import type { RedisLink } from './redis-link.ts'

/** The reports of a subscription. */
export interface SubscriberEvents {
  message(text: string): void
  /** The subscription is in place, perhaps again. Messages before that were lost. */
  up(): void
}

/**
 * Subscribes to a channel over a connection of its own, until that is closed. Every node of a Cluster receives what any node
 * publishes, and a replica what its master publishes.
 */
export function subscribe(
  channel: string,
  link: Pick<RedisLink, 'anyServer' | 'masterNames'>,
  events: SubscriberEvents,
): LastingConnection {
  const subscription = new LastingConnection({
    // Another one each time, so that the subscriber moves on from one that is gone.
    find: async () => link.anyServer(),
    open: async (connection) => {
      await connection.connect()
      await connection.subscribe(channel, (text) => events.message(text))
    },
    ask: (connection, { name }) => {
      // A server that is no master any more may have been taken out of the Cluster, and then hears nothing.
      if (!link.masterNames().has(name)) subscription.drop('it is no master any more')
      return connection.ping()
    },
    up: () => events.up(),
  })
  return subscription
}
