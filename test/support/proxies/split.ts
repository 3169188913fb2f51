import type { Test } from 'tap'
import { BrowserSocket } from '../browser/browser-socket.ts'
import { connection } from './connection.ts'
import { startFleet } from '../deployment/deployed.ts'
import { JarBrowser } from '../browser/jar-browser.ts'
import type { DocumentedProxy } from './checks.ts'
import { ACCOUNTS, TRANSFER } from './requests.ts'
import { PUBLIC } from '../user.ts'
import { ready, type ServerProcess } from '../server/server-process.ts'
import { untilSlow } from '../time/until.ts'
import { logIn } from '../parts.ts'

const INSTANCES = 3
const SOCKETS = 150
const REQUESTS = 450
/** The largest part of the requests that an instance may get, as a multiple of an equal part. */
const LARGEST_PART = 1.5
/** How far the numbers of sockets may be apart once as many are opened as the instance that was restarted last has lost. */
const LARGEST_SPREAD = 15
const OPEN_AT_ONCE = 10
/** How soon a page opens its socket again. */
const RETURN_MS = 20
const FLEET = {
  DRAIN_WAIT_SECONDS: '3',
  DRAIN_SECONDS: '5',
  MAX_PUBLIC_RELAYS_PER_IP: '1000',
  PUBLIC_HANDSHAKES_PER_MINUTE: '0',
}

/** What one instance has: sockets that are open, and requests that it has answered. */
interface Part {
  readonly sockets: number
  readonly requests: number
}

/**
 * Restarts three instances in turn while sockets are open, and checks that afterwards requests are split among them as if
 * there were no sockets, and that new sockets go where the fewest are, inside enterNamespaces().
 */
export async function splitsAfterRoll(t: Test, proxy: DocumentedProxy): Promise<void> {
  const { launch, upstream } = await startFleet(t, proxy.publicUrl, FLEET)
  upstream.onSocket = () => undefined
  const hosts = proxy.hosts.slice(0, INSTANCES)
  const instances = await Promise.all(hosts.map((host) => launch(host)))
  for (const each of instances) t.ok(await ready(each))
  const stop = await proxy.start(t, false)
  const browser = new JarBrowser()
  await untilSlow(async () => (await fetch(`${proxy.publicUrl}/auth/session`).catch(() => undefined))?.ok === true)
  await logIn(browser, proxy.publicUrl)
  const pages = new Pages(t, proxy.publicUrl)
  await pages.open(SOCKETS)

  for (const [index, host] of hosts.entries()) {
    instances[index]?.child.kill('SIGTERM')
    t.equal(await instances[index]?.exited, 0, `instance ${index + 1} has drained`)
    const fresh = await launch(host)
    instances[index] = fresh
    t.ok(await ready(fresh))
    await pages.allOpen()
    await isUsed(proxy, fresh)
  }
  const rolled = await partsOf(instances)
  await load(t, browser, proxy)
  const after = await partsOf(instances)
  const requests = after.map((part, index) => part.requests - (rolled[index]?.requests ?? 0))
  await pages.open(SOCKETS / 2)
  const sockets = (await partsOf(instances)).map((part) => part.sockets)
  const before = rolled.map((part) => part.sockets)
  t.comment(
    `requests ${requests.join(', ')}; sockets after the roll ${before.join(', ')}, and more ${sockets.join(', ')}`,
  )
  t.ok(
    Math.max(...requests) <= (LARGEST_PART * REQUESTS) / INSTANCES,
    `no instance gets more than ${LARGEST_PART} times its part of the requests: ${requests.join(', ')}`,
  )
  if (proxy.countsSockets) {
    const spread = Math.max(...sockets) - Math.min(...sockets)
    t.ok(spread <= LARGEST_SPREAD, `new sockets go where the fewest are: ${sockets.join(', ')}`)
  }
  pages.close()
  await stop()
}

/** Pages that each keep a public socket open. */
class Pages {
  readonly #publicUrl: string
  readonly #lines = new Set<BrowserSocket>()
  #wanted = 0
  #isOver = false

  constructor(t: Test, publicUrl: string) {
    this.#publicUrl = publicUrl
    t.teardown(() => this.close())
  }

  async open(count: number): Promise<void> {
    this.#wanted += count
    for (let opened = 0; opened < count; opened += OPEN_AT_ONCE) {
      await Promise.all(Array.from({ length: Math.min(OPEN_AT_ONCE, count - opened) }, () => this.#open()))
    }
    await this.allOpen()
  }

  /** Resolves when every page has its socket. */
  async allOpen(): Promise<void> {
    await untilSlow(() => this.#lines.size === this.#wanted, 'every page has a socket')
  }

  close(): void {
    this.#isOver = true
    for (const { socket } of this.#lines) socket.terminate()
  }

  /** Opens a socket, and another one whenever it closes. */
  async #open(): Promise<void> {
    if (this.#isOver) return
    const url = new URL(PUBLIC, this.#publicUrl).href.replace('https', 'wss')
    const line = new BrowserSocket(url, { origin: this.#publicUrl })
    line.socket.once('close', () => {
      this.#lines.delete(line)
      setTimeout(() => void this.#open(), RETURN_MS)
    })
    await new Promise((resolve) => line.socket.once('open', resolve).once('close', resolve))
    if (line.socket.readyState === line.socket.OPEN) this.#lines.add(line)
  }
}

/** Resolves when the proxy sends requests to an instance that was restarted. */
async function isUsed(proxy: DocumentedProxy, instance: ServerProcess): Promise<void> {
  const [{ requests: before } = { requests: 0 }] = await partsOf([instance])
  await untilSlow(async () => {
    await (await fetch(`${proxy.publicUrl}/auth/session`)).arrayBuffer()
    const [part] = await partsOf([instance])
    return (part?.requests ?? 0) > before
  }, 'the proxy uses an instance that was restarted')
}

/** Makes reads and orders, a few at a time. */
async function load(t: Test, browser: JarBrowser, { publicUrl }: DocumentedProxy): Promise<void> {
  const callers = [false, false, true].map((allowH2) => connection(t, browser, publicUrl, allowH2))
  const statuses = new Set<number>()
  await Promise.all(
    callers.map(async (send) => {
      for (let count = 0; count < REQUESTS / callers.length; count++) {
        const answer = count % 3 === 0 ? await send(TRANSFER, { method: 'POST', body: '{}' }) : await send(ACCOUNTS)
        await answer.arrayBuffer()
        statuses.add(answer.status)
      }
    }),
  )
  t.same(statuses, new Set([200]), 'every request is answered')
}

/** What each instance counts by itself. */
async function partsOf(instances: readonly ServerProcess[]): Promise<Part[]> {
  return Promise.all(
    instances.map(async ({ host, opsPort }) => {
      const metrics = await (await fetch(`http://${host}:${opsPort}/metrics`)).text()
      const sum = (pattern: RegExp): number =>
        [...metrics.matchAll(pattern)].reduce((total, [, value]) => total + Number(value), 0)
      return {
        sockets: sum(/^bff_relays\{[^}]*\} (\d+)$/gm),
        requests: sum(/^bff_http_request_duration_seconds_count\{[^}]*route="\/(?:api|auth)\/[^}]*\} (\d+)$/gm),
      }
    }),
  )
}
