import type { FastifyInstance } from 'fastify'
import type { Config } from '../../config/config.ts'
import type { Opened } from '../handshake.ts'
import type { SocketDependencies } from '../socket-dependencies.ts'
import { socketRoute } from '../socket-route.ts'
import { Feed } from './feed.ts'
import { Member } from './browser/index.ts'

interface FeedRouteDependencies extends SocketDependencies {
  readonly config: Pick<Config, 'relay' | 'feed'>
}

/** `GET /ws/public` where browsers share the market data (docs/reference.md, Shared market data). */
export async function feedRoutes(fastify: FastifyInstance, deps: FeedRouteDependencies): Promise<void> {
  const { config, metrics, log } = deps
  const feed = new Feed({ wsUrl: config.relay.wsUrl, limits: { ...config.relay, ...config.feed }, metrics, log })
  fastify.addHook('onClose', async () => feed.close())
  // Nothing upstream is opened for it, so its handshake waits for nothing.
  const opened: Opened = {
    join(browser, slot, identity) {
      const member = new Member(browser, identity.client, feed, slot.opened(identity))
      slot.owner = member
      feed.joined(member)
    },
    drop: () => undefined,
  }
  socketRoute(fastify, '/ws/public', deps, {
    kind: 'public',
    open: async (handshake) => (handshake.acquirePublic() ? opened : undefined),
  })
}
