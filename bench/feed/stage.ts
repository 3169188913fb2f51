import { Actor } from '../actor.ts'
import type { CrowdOrder, CrowdReply } from '../load/crowd.ts'
import { SYMBOLS, type MarketOrder, type MarketReply } from '../load/market.ts'
import { handshakes } from '../pumps.ts'
import type { Choice } from '../rest-load.ts'
import { bare, bareRelay, nginxRelay, thisServer, type RelayContender } from '../relay-contenders.ts'

export const SHARED = 'this server, shared'
export const RELAY = 'this server, relay'
/** What sharing costs at least in Node: the writes, and nothing else. */
export const FAN_OUT = 'bare fan-out'
export const BROWSERS = 2000

/** A running server between browsers and an upstream of its own. */
export interface FeedContender extends RelayContender {
  readonly market: Actor<MarketOrder, MarketReply>
  /** Whether its browsers share upstream sockets, which stay open when all browsers have gone. */
  readonly isShared: boolean
}

/** The contenders of the market data bench, and the browsers of all of them. */
export interface FeedStage {
  readonly contenders: readonly FeedContender[]
  readonly crowd: Actor<CrowdOrder, CrowdReply>
}

/** What a page asks for to show five prices. */
const SUBSCRIBE_TO_ALL: readonly string[] = SYMBOLS.map(
  (symbol, index) => `{"ticks":"${symbol}","subscribe":1,"req_id":${index + 1}}`,
)

/** Starts everything; in a short run only this server and nginx, whose shares the goals compare. */
export async function startFeeds({ before, short = false }: Choice): Promise<FeedStage> {
  const crowd = new Actor<CrowdOrder, CrowdReply>('crowd', 'crowd.ts')
  const shared = { PUBLIC_FEED: 'shared' }
  const contenders = [
    await withMarket((_port, wsUrl) => thisServer(SHARED, wsUrl, shared), true),
    ...(before === undefined
      ? []
      : [await withMarket((_port, wsUrl) => thisServer('before', wsUrl, shared, before), true)]),
    ...(short
      ? []
      : [
          await withMarket((_port, wsUrl) => bare(FAN_OUT, 'fan-out.ts', wsUrl), true),
          await withMarket((_port, wsUrl) => thisServer(RELAY, wsUrl)),
          await withMarket((_port, wsUrl) => bareRelay(wsUrl)),
        ]),
    await withMarket((port) => nginxRelay(port)),
  ]
  return { contenders, crowd }
}

async function withMarket(
  start: (port: number, wsUrl: string) => Promise<RelayContender>,
  isShared = false,
): Promise<FeedContender> {
  const market = new Actor<MarketOrder, MarketReply>('market', 'market.ts')
  const { count: port } = await market.order({ do: 'listen' })
  return { ...(await start(port, `ws://127.0.0.1:${port}`)), market, isShared }
}

/** Opens sockets that ask for these messages in turn. @throws Error unless each browser has all its answers */
export async function gather(
  { crowd }: FeedStage,
  { name, port, path, origin }: FeedContender,
  count: number,
  messages: readonly (readonly string[])[] = [SUBSCRIBE_TO_ALL],
): Promise<void> {
  const all = handshakes(count, path, origin)
  const { count: served } = await crowd.order({ do: 'open', port, handshakes: all, messages, withinMs: 0 })
  if (served !== count) throw new Error(`${name}: ${served} of ${count} browsers have their answers`)
}

/** Closes all sockets. Those of the shared feed stay open for a while. */
export async function disperse({ crowd }: FeedStage, { isShared, market }: FeedContender): Promise<void> {
  await crowd.order({ do: 'close' })
  if (!isShared) await market.order({ do: 'await', sockets: 0 })
}
