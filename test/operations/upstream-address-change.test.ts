import type { RequestListener } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { sendTo, TRADING, ACCOUNTS } from '../support/user.ts'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { startNameServer } from '../support/deployment/name-server.ts'
import { enterNamespaces } from '../support/deployment/namespaces.ts'
import { until } from '../support/time/until.ts'
import { httpServer } from '../support/server/http-server.ts'
import { startWorld } from '../support/world.ts'

// In a process of its own: it starts again in namespaces.

const skip = enterNamespaces()

const NAME = 'api.test'
const OLD = '127.0.0.2'
const NEW = '127.0.0.3'
const KINDS = ['GET', 'POST', 'OTP'] as const
type Kind = (typeof KINDS)[number]

/** Starts an upstream that counts its requests by kind. */
async function upstreamAt(
  t: Test,
  address: string,
  port: number,
): Promise<{ port: number; requests: Map<Kind, number> }> {
  const requests = new Map<Kind, number>()
  const respond: RequestListener = (request, response) => {
    const isOtp = request.url?.endsWith('/otp') === true
    const kind = isOtp ? 'OTP' : request.method === 'POST' ? 'POST' : 'GET'
    requests.set(kind, (requests.get(kind) ?? 0) + 1)
    request.resume().on('end', () => response.writeHead(isOtp ? 404 : 200).end('{}'))
  }
  const url = await httpServer(t, respond, port, address)
  return { port: Number(new URL(url).port), requests }
}

await test(
  'Requests follow the name of upstream to a new address under load, and none is lost',
  { skip },
  async (t) => {
    const addresses = new Set([OLD])
    await startNameServer(t, NAME, addresses)
    const old = await upstreamAt(t, OLD, 0)
    const moved = await upstreamAt(t, NEW, old.port)
    const { server, browser } = await startWorld(t, {
      user: 'demo',
      settings: { API_URL: `http://${NAME}:${old.port}`, UPSTREAM_MAX_CONNECTION_SECONDS: '2' },
    })
    const url = new URL(server.url)
    const cookie = browser.cookieHeader(url, url)
    const headers = { cookie, 'x-csrf': '1' }
    const statuses = new Set<number>()
    const made = new Map<Kind, number>()
    const call = async (kind: Kind): Promise<void> => {
      made.set(kind, (made.get(kind) ?? 0) + 1)
      if (kind === 'OTP') {
        const line = new BrowserSocket(`ws://127.0.0.1:${server.port}${TRADING}`, {
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
    // The pauses are short, so that no connection is closed because it is idle.
    const load = KINDS.map(async (kind) => {
      for (; !over.signal.aborted; await delay(50)) await call(kind)
    })
    await until(() => KINDS.every((kind) => (old.requests.get(kind) ?? 0) > 1))
    addresses.clear()
    addresses.add(NEW)
    await until(() => KINDS.every((kind) => moved.requests.has(kind)), 'every kind of request goes to the new address')
    over.abort()
    await Promise.all(load)
    const before = new Map(old.requests)
    for (const kind of KINDS) for (let times = 0; times < 5; times++) await call(kind)
    t.same(old.requests, before, 'no request goes to the old address any more')
    t.same(statuses, new Set([200, 4404]), 'no request failed')
    for (const kind of KINDS)
      t.equal((old.requests.get(kind) ?? 0) + (moved.requests.get(kind) ?? 0), made.get(kind), kind)
  },
)
