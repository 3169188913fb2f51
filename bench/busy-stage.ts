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
import { handshakes, openRelays, startPump } from './pumps.ts'
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
const PATH = '/ws/trading/CR9000'

/** What goes on beside the requests that are measured. */
export const LOAD_NOTE = `Meanwhile this server has ${RELAYS.toLocaleString('en')} trading sockets, which get ${FRAMES_PER_SECOND} frames a second, and ${FEED_BROWSERS} browsers at the shared feed, which get a price every ${TICK_MS} ms each. Every second or so a user logs in and out, each session renews its token every ${RENEWAL_MS / 1000} s, and the metrics are read every ${SCRAPE_MS / 1000} s.`

/** Something that goes on for so many seconds. @param signal aborts when they are over */
type Activity = (seconds: number, signal: AbortSignal) => Promise<unknown>

/** This server with everything that goes on, and the bare proxy. */
interface BusyStage {
  readonly world: World
  readonly own: Running
  readonly bare: Running
  /** Executes something while everything else goes on for so many seconds. */
  readonly during: <Result>(seconds: number, execute: () => Promise<Result>) => Promise<Result>
}

/** Starts everything, and opens all sockets. */
export async function startBusyStage(on: Processors): Promise<BusyStage> {
  const ends = { browsers: startPump('browsers'), upstream: startPump('upstream sockets') }
  const wsUrl = `ws://127.0.0.1:${await ends.upstream.order({ do: 'listen' })}`
  const market = new Actor<MarketOrder, MarketReply>('market', 'market.ts')
  const { count: marketPort } = await market.order({ do: 'listen' })
  const opsPort = await freePort()
  const settings = {
    WS_URL: `ws://127.0.0.1:${marketPort}`,
    OTP_HOSTS: new URL(wsUrl).host,
    PUBLIC_FEED: 'shared',
    MAX_RELAYS_PER_SESSION: String(RELAYS),
    OPS_PORT: String(opsPort),
  }
  const { world, contenders } = await startServers(
    [thisServer(THIS_SERVER, { settings, on }), bareProxy(BARE, 'info', on)],
    { wsUrl, accessTokenSeconds: TOKEN_SECONDS },
  )
  const [started, bare] = contenders as [Running, Running]
  const own = { ...started, cookies: await logInByAndBy(started) }
  const { port, origin } = addressOf(own)
  await openRelays(ends, port, handshakes(RELAYS, PATH, origin, own.cookies))
  const browsers = await openFeed({ ...own, port, path: '/ws/public', origin, market, isShared: true })
  const all: Activity[] = [
    (seconds) => ends.upstream.order({ do: 'pump', framesPerWrite: 1, framesPerSecond: FRAMES_PER_SECOND, seconds }),
    browsers,
    (_seconds, signal) => again(() => logInAndOut(own), LOGIN_MS, signal),
    (_seconds, signal) => again(() => expectStatus(`http://127.0.0.1:${opsPort}/metrics`, 200), SCRAPE_MS, signal),
  ]
  return { world, own, bare, during: (seconds, execute) => executeBeside(all, seconds, execute) }
}

/** Executes something while these activities go on. */
async function executeBeside<Result>(
  activities: readonly Activity[],
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

async function openFeed(contender: FeedContender): Promise<Activity> {
  const stage = { contenders: [], crowd: new Actor<CrowdOrder, CrowdReply>('crowd', 'crowd.ts') }
  await gather(stage, contender, FEED_BROWSERS)
  return (seconds) =>
    tick(stage, contender, FEED_BROWSERS, {
      ticksPerBurst: 1,
      bursts: (seconds * 1000) / TICK_MS,
      everyMs: TICK_MS,
      isOneWrite: true,
    })
}

/** Acts again and again. */
async function again(act: () => Promise<unknown>, everyMs: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await act()
    await pause(everyMs, undefined, { signal }).catch(() => undefined)
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
