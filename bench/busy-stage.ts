import { setTimeout as pause } from 'node:timers/promises'
import { request } from 'undici'
import { freePort } from '../sandbox/listening.ts'
import { Actor } from './actor.ts'
import { BARE, bareProxy, publicOrigin, SESSIONS, thisServer, THIS_SERVER } from './contenders.ts'
import { tick } from './feed/delivery.ts'
import { gather, type FeedContender } from './feed/stage.ts'
import type { CrowdOrder, CrowdReply } from './load/crowd.ts'
import type { MarketOrder, MarketReply } from './load/market.ts'
import { BROWSER_HEADERS } from './load/request-texts.ts'
import { logInMany } from './login.ts'
import type { Processors } from './program.ts'
import { handshakes, openRelays, startPump, type Pump } from './pumps.ts'
import { startServers, type Running } from './rest-load.ts'
import type { World } from './world.ts'

const RELAYS = 1000
const FRAMES_PER_SECOND = 500
const FEED_BROWSERS = 200
const TICK_MS = 100
const TOKEN_SECONDS = 40
/** A session renews its token this long after it got it. */
const RENEWAL_MS = 0.9 * TOKEN_SECONDS * 1000
const SCRAPE_MS = 5000
const LOGIN_MS = 1000
const TRADING = '/ws/trading/CR9000'
const PUBLIC = '/ws/public'

/** The bare proxy in one process with a bare relay and a bare fan-out, which have as many sockets as this server. */
export const BARE_WITH_SOCKETS = `${BARE} with sockets`

/** What goes on beside the requests that are measured. */
export const LOAD_NOTE = `Meanwhile the measured process also serves ${RELAYS.toLocaleString('en')} relayed sockets, with ${FRAMES_PER_SECOND} frames a second in all, and ${FEED_BROWSERS} browsers that share market data, each of which gets a price every ${TICK_MS} ms. At this server, a user also logs in and out every second or so, each session renews its token every ${RENEWAL_MS / 1000} s, and the metrics are read every ${SCRAPE_MS / 1000} s.`

/** Something that goes on for so many seconds. @param signal aborts when they are over */
type Activity = (seconds: number, signal: AbortSignal) => Promise<unknown>

/** A server, and what goes on there while it is measured. */
export interface Busy extends Running {
  readonly activities: readonly Activity[]
}

/** The busy servers, and the bare proxy, which has nothing else to do. */
interface BusyStage {
  readonly world: World
  readonly contenders: readonly [own: Busy, bareWithSockets: Busy, bare: Busy]
}

/** Both ends of the sockets of a server. */
interface Ends {
  readonly relays: Readonly<Record<'browsers' | 'upstream', Pump>>
  readonly relayUrl: string
  readonly market: Actor<MarketOrder, MarketReply>
  readonly feedUrl: string
}

/** Starts everything, and opens all sockets. */
export async function startBusyStage(on: Processors): Promise<BusyStage> {
  const [ends, bareEnds] = [await startEnds(), await startEnds()]
  const [opsPort, relayPort, feedPort] = [await freePort(), await freePort(), await freePort()]
  const settings = {
    WS_URL: ends.feedUrl,
    OTP_HOSTS: new URL(ends.relayUrl).host,
    PUBLIC_FEED: 'shared',
    MAX_RELAYS_PER_SESSION: String(RELAYS),
    OPS_PORT: String(opsPort),
  }
  const bareSettings = {
    RELAY_PORT: String(relayPort),
    RELAY_URL: bareEnds.relayUrl,
    FEED_PORT: String(feedPort),
    FEED_URL: bareEnds.feedUrl,
  }
  const { world, contenders } = await startServers(
    [
      thisServer(THIS_SERVER, { settings, on }),
      bareProxy(BARE_WITH_SOCKETS, { file: 'all.ts', settings: bareSettings, on }),
      bareProxy(BARE, { on }),
    ],
    { wsUrl: ends.relayUrl, accessTokenSeconds: TOKEN_SECONDS },
  )
  const [started, bareWithSockets, bare] = contenders as [Running, Running, Running]
  const own = { ...started, cookies: await logInByAndBy(started) }
  const { port, origin } = addressOf(own)
  const sockets = await openSockets(ends, own, handshakes(RELAYS, TRADING, origin, own.cookies), [port, port], origin)
  const bareSockets = await openSockets(
    bareEnds,
    bareWithSockets,
    handshakes(RELAYS, '/', origin),
    [relayPort, feedPort],
    origin,
  )
  const others: Activity[] = [
    (_seconds, signal) => again(() => logInAndOut(own), LOGIN_MS, signal),
    (_seconds, signal) => again(() => expectStatus(`http://127.0.0.1:${opsPort}/metrics`, 200), SCRAPE_MS, signal),
  ]
  return {
    world,
    contenders: [
      { ...own, activities: [...sockets, ...others] },
      { ...bareWithSockets, activities: bareSockets },
      { ...bare, activities: [] },
    ],
  }
}

async function startEnds(): Promise<Ends> {
  const relays = { browsers: startPump('browsers'), upstream: startPump('upstream sockets') }
  const market = new Actor<MarketOrder, MarketReply>('market', 'market.ts')
  const { count: marketPort } = await market.order({ do: 'listen' })
  return {
    relays,
    relayUrl: `ws://127.0.0.1:${await relays.upstream.order({ do: 'listen' })}`,
    market,
    feedUrl: `ws://127.0.0.1:${marketPort}`,
  }
}

/** Opens the relays and the feed of a server. @returns what goes on over them */
async function openSockets(
  { relays, market }: Ends,
  server: Running,
  requests: readonly string[],
  [relayPort, feedPort]: readonly [relay: number, feed: number],
  origin: string,
): Promise<Activity[]> {
  await openRelays(relays, relayPort, requests)
  const feed: FeedContender = { ...server, port: feedPort, path: PUBLIC, origin, market, isShared: true }
  const stage = { contenders: [], crowd: new Actor<CrowdOrder, CrowdReply>('crowd', 'crowd.ts') }
  await gather(stage, feed, FEED_BROWSERS)
  return [
    (seconds) => relays.upstream.order({ do: 'pump', framesPerWrite: 1, framesPerSecond: FRAMES_PER_SECOND, seconds }),
    (seconds) =>
      tick(stage, feed, FEED_BROWSERS, {
        ticksPerBurst: 1,
        bursts: (seconds * 1000) / TICK_MS,
        everyMs: TICK_MS,
        isOneWrite: true,
      }),
  ]
}

/** Executes something while everything that belongs to a busy server goes on for so many seconds. */
export async function executeBeside<Result>(
  { activities }: Busy,
  seconds: number,
  execute: () => Promise<Result>,
): Promise<Result> {
  const over = new AbortController()
  const others = activities.map((activity) => activity(seconds, over.signal))
  const result = await execute()
  over.abort()
  await Promise.all(others)
  return result
}

/** Logs users in one after the other, so that their tokens are not renewed at the same moment. */
async function logInByAndBy(contender: Running): Promise<string[]> {
  const cookies: string[] = []
  while (cookies.length < SESSIONS) {
    cookies.push(await logIn(contender))
    await pause(RENEWAL_MS / SESSIONS)
  }
  return cookies
}

/** Acts again and again. A round is short, so it begins at a random moment of the interval. */
async function again(act: () => Promise<unknown>, everyMs: number, signal: AbortSignal): Promise<void> {
  let waitMs = Math.random() * everyMs
  for (;;) {
    await pause(waitMs, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) return
    await act()
    waitMs = everyMs
  }
}

async function logInAndOut(contender: Running): Promise<void> {
  const headers = { ...BROWSER_HEADERS, cookie: await logIn(contender) }
  await expectStatus(new URL('/auth/logout', contender.url).href, 204, { method: 'POST', headers })
}

async function logIn(contender: Running): Promise<string> {
  const { origin } = addressOf(contender)
  const [cookie = ''] = await logInMany({ url: new URL('/auth/login', contender.url).href, publicOrigin: origin }, 1)
  return cookie
}

function addressOf({ url }: Running): { readonly port: number; readonly origin: string } {
  const port = Number(new URL(url).port)
  return { port, origin: publicOrigin(port) }
}

/** @throws Error if the response has another status */
async function expectStatus(
  url: string,
  status: number,
  options: { readonly method?: 'POST'; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<void> {
  const { statusCode, body } = await request(url, options)
  const text = await body.text()
  if (statusCode !== status) throw new Error(`${url} responds ${statusCode} ${text.slice(0, 200)}`)
}
