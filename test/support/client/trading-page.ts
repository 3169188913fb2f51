import type { Test } from 'tap'
import type { Client } from '../../../client/dist/client.js'
import { pageClient } from './page-client.ts'
import { TradingService } from './trading-service.ts'
import { startWorld, type World, RELAY } from '../world.ts'

/** The client of a page whose user is logged in, at a server with a minimal trading service behind it. */
export interface TradingPage {
  readonly client: Client
  readonly service: TradingService
  readonly world: World<'scripted'>
}

/** Starts one that ends with the test. */
export async function tradingPage(t: Test, settings: Record<string, string> = {}): Promise<TradingPage> {
  const world = await startWorld(t, { ...RELAY, settings })
  const service = new TradingService(world.upstream)
  return { client: pageClient(t, world.browser, world.server.url), service, world }
}
