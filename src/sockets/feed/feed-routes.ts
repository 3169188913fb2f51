import type { FastifyInstance } from 'fastify'
import type { Config } from '../../config/config.ts'
import { socketRoute, type Opened } from '../handshake.ts'
import type { SocketDependencies } from '../prepare-sockets.ts'
import { Feed } from './feed.ts'

interface FeedRouteDependencies extends SocketDependencies {
  readonly config: Pick<Config, 'relay' | 'feed'>
}

/** `GET /ws/public` where browsers share the market data (docs/reference.md, Shared market data). */
export async function feedRoutes(fastify: FastifyInstance, deps: FeedRouteDependencies): Promise<void> {
  const feed = new Feed(deps)
  fastify.addHook('onClose', async () => feed.end())
  // Nothing upstream is opened for it, so its handshake waits for nothing.
  const opened: Opened = {
    join(browser, slot, { identity, ended }) {
      slot.owner = feed.join(browser, identity.client, ended)
    },
  }
  socketRoute(fastify, '/ws/public', deps, {
    kind: 'public',
    open: async (handshake) => (handshake.acquirePublic() ? opened : undefined),
  })
}
