import { setTimeout as delay } from 'node:timers/promises'
import { connect, getCACertificates } from 'node:tls'
import type { Test } from 'tap'
import { connection, type Send } from './connection.ts'
import { startFleet, type Fleet } from '../deployment/deployed.ts'
import { JarBrowser } from '../browser/jar-browser.ts'
import { noOrderIsRepeated, rollLosesNothing } from './losses.ts'
import { ACCOUNTS, bodiesPass, entranceIsOurs, manyRequestsPass, nothingIsHeldBack, TRANSFER } from './requests.ts'
import { openSocket, SILENCE_MS, socketsPass } from './sockets.ts'
import { PUBLIC } from '../user.ts'
import { stalledWay } from '../peers/stalled-way.ts'
import { ready } from '../server/server-process.ts'
import { nextEvent, untilSlow } from '../time/until.ts'
import { logIn } from '../parts.ts'

/** A proxy that the documentation shows. */
export interface DocumentedProxy {
  /** The origin that browsers use. */
  readonly publicUrl: string
  /** The origin from which it redirects browsers to https. */
  readonly insecureUrl: string
  /** Addresses of the instances that it may send to. */
  readonly hosts: readonly [string, string, ...string[]]
  /**
   * Starts it as documented, or with timeouts of one second instead of 75. It ends with the test.
   * @returns a function that stops it and returns its logs
   */
  start(t: Test, isImpatient: boolean): Promise<() => Promise<string>>
  /** Whether browsers get HTTP/2 from it. */
  readonly speaksHttp2: boolean
  /** Whether it closes silent sockets. */
  readonly hasPatience: boolean
  /** Whether it sends a request, a POST too, to another instance after a dead one refused the connection. */
  readonly triesOthers: boolean
  /** It may buffer responses of a known length up to this size; absent: none. */
  readonly streamsFromBytes?: number
  /** Whether it checks the readiness of instances. */
  readonly asks: boolean
  /** Whether it sends to instances that are not ready when none is. */
  readonly usesUnready: boolean
  /** Whether it sends a new socket to the instance that has the fewest. */
  readonly countsSockets: boolean
}

const FORGED = '203.0.113.9'
/** The time in which a proxy that checks every second notices a dead instance. */
const NOTICE_MS = 2500
/** The time after which a proxy tries a host again that has failed. */
const RETRIES_MS = 1100
const SILENT_ROUNDS = 8
/** Settings that make a roll, and the loss of readiness without Redis, fast. */
const FLEET = { DRAIN_WAIT_SECONDS: '3', DRAIN_SECONDS: '5', READY_GRACE_SECONDS: '1' }

/** Starts a proxy in front of instances and checks all requirements of docs/operating/, inside enterNamespaces(). */
export async function checkProxy(t: Test, proxy: DocumentedProxy): Promise<void> {
  const fleet = await startFleet(t, proxy.publicUrl, FLEET)
  const [host, other] = proxy.hosts
  const first = await fleet.launch(host)
  t.ok(await ready(first))
  const stop = await proxy.start(t, false)
  await untilSlow(() => isServing(proxy))
  const browser = new JarBrowser()
  await logIn(browser, proxy.publicUrl)
  const send = connection(t, browser, proxy.publicUrl)
  const overHttp2 = connection(t, browser, proxy.publicUrl, true)
  const session = await send('/auth/session', {
    headers: { 'x-forwarded-for': FORGED, forwarded: `for=${FORGED}` },
  })
  t.match(await session.json(), { authenticated: true }, 'logged in')
  await forgeAddress(proxy)

  await Promise.all([
    entranceIsOurs(t, proxy, send),
    bodiesPass(t, fleet, connection(t, browser, proxy.publicUrl)),
    nothingIsHeldBack(t, fleet, proxy, connection(t, browser, proxy.publicUrl)),
    manyRequestsPass(t, connection(t, browser, proxy.publicUrl), overHttp2),
    socketsPass(t, fleet, proxy.publicUrl, browser),
  ])
  const connect = (allowH2: boolean): Send => connection(t, browser, proxy.publicUrl, allowH2)
  const second = await noOrderIsRepeated(t, fleet, connect, first, () => fleet.launch(other))
  if (!proxy.triesOthers) await delay(NOTICE_MS)
  const third = await rollLosesNothing(t, fleet, [send, overHttp2], second, () => fleet.launch(host))

  fleet.redis.process.kill('SIGKILL')
  let stopped = proxy.hasPatience ? await silenceIsCut(t, fleet, proxy, browser, stop) : undefined
  await untilSlow(async () => !(await fetch(`http://${third.host}:${third.opsPort}/readyz`)).ok)
  if (proxy.asks) await delay(NOTICE_MS)
  const health = await fetch(`${proxy.publicUrl}/api/v1/health`, { headers: { 'x-csrf': '1' } })
  t.equal(health.status, proxy.usesUnready ? 200 : 503, 'without Redis')
  stopped ??= await stop()
  t.match(stopped, '/auth/callback', 'it logs requests')
  t.notMatch(stopped, /code=|state=/, 'without their queries')

  third.child.kill('SIGTERM')
  await third.exited
  const logs = [first, second, third].map((each) => each.output().stdout).join('')
  t.match(logs, /"route":"\/auth\/session"[^\n]*"client":"127.0.0.1"/)
  t.notMatch(logs, FORGED, 'X-Forwarded-For of a client is ignored')
  t.notMatch(logs, /"route":"\/auth\/session"[^\n]*"client":"10\./, 'and no client hides behind the proxy')
}

/** Checks that a host which is gone, so that every packet to it is lost, costs no request more than a wait, inside enterNamespaces(). */
export async function checkSilentHost(t: Test, proxy: DocumentedProxy): Promise<void> {
  const fleet = await startFleet(t, proxy.publicUrl)
  const [host, gone] = proxy.hosts
  t.ok(await ready(await fleet.launch(host)))
  const silent = await stalledWay(t, 0, gone, 3000)
  await silent.stall()
  await proxy.start(t, false)
  await untilSlow(() => isServing(proxy))
  const browser = new JarBrowser()
  await logIn(browser, proxy.publicUrl)
  const send = connection(t, browser, proxy.publicUrl)
  const statuses: number[] = []
  for (let count = 0; count < SILENT_ROUNDS; count++) {
    const isOrder = proxy.triesOthers && count % 3 !== 0
    const response = isOrder ? await send(TRANSFER, { method: 'POST', body: '{}' }) : await send(ACCOUNTS)
    await response.arrayBuffer()
    statuses.push(response.status)
    // The proxy tries the host again.
    await delay(RETRIES_MS)
  }
  t.same(new Set(statuses), new Set([200]), String(statuses))
}

/**
 * Forges an address. A proxy may pass on unread whatever follows an upgrade, and leave out what its client names in Connection, its
 * own header too.
 */
async function forgeAddress({ publicUrl }: DocumentedProxy): Promise<void> {
  const { hostname, port } = new URL(publicUrl)
  const to = { host: hostname, port: Number(port || 443), servername: hostname, ca: getCACertificates('default') }
  const get = (lines: string): string => `GET /auth/session HTTP/1.1\r\nHost: ${hostname}\r\n${lines}\r\n\r\n`
  for (const lines of ['Connection: Upgrade\r\nUpgrade: websocket', 'Connection: keep-alive, X-Forwarded-For']) {
    const socket = connect(to).on('error', () => undefined)
    socket.write(get(lines))
    await nextEvent(socket, 'data')
    const closed = nextEvent(socket.resume(), 'close')
    socket.write(get(`Connection: close\r\nX-Forwarded-For: ${FORGED}`))
    await closed
  }
}

/** Restarts the proxy with short timeouts. @returns the log of the first run */
async function silenceIsCut(
  t: Test,
  { upstream }: Fleet,
  proxy: DocumentedProxy,
  browser: JarBrowser,
  stop: () => Promise<string>,
): Promise<string> {
  const log = await stop()
  await proxy.start(t, true)
  await untilSlow(() => isServing(proxy))
  upstream.onSocket = () => undefined
  const line = await openSocket(t, proxy.publicUrl, browser, PUBLIC)
  const openedAt = performance.now()
  await line.closed
  const lasted = performance.now() - openedAt
  t.ok(lasted > 500 && lasted < SILENCE_MS, `how long silence may last is set there: ${lasted.toFixed()} ms`)
  return log
}

async function isServing({ publicUrl }: DocumentedProxy): Promise<boolean> {
  return (await fetch(`${publicUrl}/auth/session`).catch(() => undefined))?.ok === true
}
