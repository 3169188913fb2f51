import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { sendTo } from '../support/api-world.ts'
import { BrowserSocket as BrowserLine } from '../support/browser-socket.ts'
import { startNameServer } from '../support/name-server.ts'
import { enterNamespaces } from '../support/namespaces.ts'
import { TRADING } from '../support/relay-world.ts'
import { until } from '../support/until.ts'
import { logIn, testWorld } from '../support/world.ts'

const skip = enterNamespaces()

const NAME = 'api.test'
const OLD = '127.0.0.2'
const NEW = '127.0.0.3'
const ACCOUNTS = '/api/trading/v1/options/accounts'
const KINDS = ['GET', 'POST', 'OTP'] as const
type Kind = (typeof KINDS)[number]

/** An upstream at an address, and how many requests of each kind it has had. */
async function upstreamAt(
  t: Test,
  address: string,
  port: number,
): Promise<{ port: number; had: Map<Kind, number> }> {
  const had = new Map<Kind, number>()
  const server: Server = createServer((request: IncomingMessage, response) => {
    const isOtp = request.url?.endsWith('/otp') === true
    const kind = isOtp ? 'OTP' : request.method === 'POST' ? 'POST' : 'GET'
    had.set(kind, (had.get(kind) ?? 0) + 1)
    request.resume().on('end', () => response.writeHead(isOtp ? 404 : 200).end('{}'))
  })
  server.keepAliveTimeout = 60_000
  server.listen(port, address)
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, had }
}

await test(
  'an upstream that moves to another address is found there under load, and nothing is lost',
  { skip },
  async (t) => {
    const addresses = new Set([OLD])
    await startNameServer(t, NAME, addresses)
    const old = await upstreamAt(t, OLD, 0)
    const moved = await upstreamAt(t, NEW, old.port)
    const { server, browser } = await testWorld(t, {
      settings: { API_URL: `http://${NAME}:${old.port}`, UPSTREAM_MAX_CONNECTION_SECONDS: '2' },
    })
    await logIn(browser, server.url)
    const url = new URL(server.url)
    const cookie = browser.cookieHeader(url, url)
    const headers = { cookie, 'x-csrf': '1' }
    const statuses = new Set<number>()
    const made = new Map<Kind, number>()
    const call = async (kind: Kind): Promise<void> => {
      made.set(kind, (made.get(kind) ?? 0) + 1)
      if (kind === 'OTP') {
        const line = new BrowserLine(`ws://127.0.0.1:${server.port}${TRADING}`, {
          origin: server.url,
          cookie,
        })
        statuses.add((await line.closed).code)
      } else {
        const init = kind === 'POST' ? { headers, body: '{}' } : { headers }
        statuses.add((await sendTo(server.port, kind, ACCOUNTS, init)).status)
      }
    }
    const over = new AbortController()
    // Never idle for so long that a connection would be given up for that.
    const load = KINDS.map(async (kind) => {
      for (; !over.signal.aborted; await delay(50)) await call(kind)
    })
    await until(() => KINDS.every((kind) => (old.had.get(kind) ?? 0) > 1))
    addresses.clear()
    addresses.add(NEW)
    await until(
      () => KINDS.every((kind) => moved.had.has(kind)),
      'every kind of call goes to the new address',
    )
    over.abort()
    await Promise.all(load)
    const before = new Map(old.had)
    for (const kind of KINDS) for (let times = 0; times < 5; times++) await call(kind)
    t.same(old.had, before, 'and none to the old one any more')
    t.same(statuses, new Set([200, 4404]), 'none was lost')
    for (const kind of KINDS)
      t.equal((old.had.get(kind) ?? 0) + (moved.had.get(kind) ?? 0), made.get(kind), kind)
  },
)
