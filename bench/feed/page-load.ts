import { SYMBOLS } from '../load/market.ts'
import { handshakes } from '../pumps.ts'
import { disperse, type FeedContender, type FeedStage } from './stage.ts'

export const STORM_MS = 2000

/** What happens when many browsers load a page at once. */
export interface PageLoad {
  readonly upstreamRequests: number
  readonly upstreamSockets: number
  /** Browsers that did not get all of their answers. */
  readonly unserved: number
  /** From the first handshake until the last browser has everything, in s. */
  readonly seconds: number
}

/** Lets browsers connect within two seconds, each of which asks for symbols, contracts and a chart. */
export async function loadPages(stage: FeedStage, contender: FeedContender, browsers: number): Promise<PageLoad> {
  const { crowd } = stage
  const { port, path, origin, market } = contender
  await market.order({ do: 'count' })
  const { count, ms } = await crowd.order({
    do: 'open',
    port,
    handshakes: handshakes(browsers, path, origin),
    messages: SYMBOLS.map(page),
    withinMs: STORM_MS,
  })
  const { count: upstreamRequests, sockets: upstreamSockets } = await market.order({ do: 'count' })
  await disperse(stage, contender)
  return { upstreamRequests, upstreamSockets, unserved: browsers - count, seconds: ms / 1000 }
}

/** The requests of a page with a chart of a symbol. */
function page(symbol: string): string[] {
  return [
    '{"active_symbols":"brief","req_id":1}',
    `{"contracts_for":"${symbol}","req_id":2}`,
    `{"ticks_history":"${symbol}","end":"latest","count":100,"style":"ticks","subscribe":1,"req_id":3}`,
  ]
}
