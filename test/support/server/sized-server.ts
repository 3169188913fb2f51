import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { BrowserSocket } from '../browser/browser-socket.ts'
import { createClient } from '../redis/client.ts'
import { connectedStore } from '../redis/connected-store.ts'
import { instanceOn, newSession } from '../sessions/session-instance.ts'
import { samplesOf } from '../telemetry/metrics.ts'
import { answerJson, type ScriptedUpstream } from '../upstream/scripted-upstream.ts'
import { startParts } from '../world.ts'
import { ready, serverProcess } from './server-process.ts'

const AT_ONCE = 50
/** Time for the garbage of handshakes to be collected. */
const SETTLE_MS = 1500
/** The response to a read, of 1.1 KB, and to an order. */
const READ = { data: 'x'.repeat(1100) }
const ORDERED = { data: { contract_id: 123_456_789, buy_price: 10, balance_after: 9990.5 } }
/** A message of upstream of 1 KB. */
const MESSAGE = JSON.stringify({ ping: 'pong', padding: 'x'.repeat(1000) })
/** Tokens as long as those of many providers. */
const TOKENS = { accessToken: 'a'.repeat(900), refreshToken: 'r'.repeat(100) }
/** The options of Node.js with which `npm start` runs the server. */
const START =
  packageStart()
    .match(/ --\S+/g)
    ?.map((option) => option.trim()) ?? []

/** What an action costs: the growth of memory, in bytes for each, or processor time, in µs for each. */
type Measure = (count: number, act: () => Promise<unknown>) => Promise<number>

/** A server as it runs in production, a process of its own with a Redis and an upstream. */
export interface SizedServer {
  readonly upstream: ScriptedUpstream
  readonly publicUrl: string
  readonly port: number
  /** Resident memory of the server, in bytes. */
  readonly residentBytes: () => Promise<number>
  /** The most that this has been. */
  readonly peakBytes: () => number
  readonly memoryEach: Measure
  readonly redisEach: Measure
  readonly cpuEach: Measure
  /** The Cookie headers of so many new sessions. */
  readonly sessions: (count: number) => Promise<string[]>
  /** Opens sockets, one for each Cookie header, and waits for a message on each. @param asks whether it must be asked for */
  readonly open: (path: string, cookies: readonly string[], asks?: boolean) => Promise<BrowserSocket[]>
}

/** Starts one that ends with the test. */
export async function sizedServer(
  t: Test,
  more: Record<string, string> = {},
  nodeOptions: readonly string[] = [],
): Promise<SizedServer> {
  const limits = {
    MAX_PUBLIC_RELAYS_PER_IP: '10000',
    PUBLIC_HANDSHAKES_PER_MINUTE: '0',
    AUTH_STARTS_PER_MINUTE: '100000',
  }
  const settings = { ...limits, LOG_LEVEL: 'info', ...more }
  const parts = await startParts(t, { upstream: 'scripted', redis: true, settings })
  const { upstream, publicUrl, port, redis } = parts
  upstream.onRest = ({ method }, response) => answerJson(response, 200, method === 'GET' ? READ : ORDERED)
  upstream.onSocket = (socket) => socket.on('message', () => socket.send(MESSAGE))
  const environment = { ...parts.settings, PORT: String(port), UV_THREADPOOL_SIZE: '16' }
  const server = await serverProcess(t, environment, { nodeOptions: [...START, ...nodeOptions] })
  t.ok(await ready(server))
  const metric = async (name: string): Promise<number> =>
    (await samplesOf(`http://127.0.0.1:${server.opsPort}`, name)).get('') ?? NaN
  const client = await createClient({ url: redis?.url ?? '' }).connect()
  t.teardown(() => client.close())
  const instance = instanceOn(await connectedStore(t, redis?.url ?? ''), 1_800_000)
  const residentBytes = (): Promise<number> => metric('process_resident_memory_bytes')
  const redisBytes = async (): Promise<number> => Number(/^used_memory:(\d+)/m.exec(await client.info('memory'))?.[1])
  const cpuMicros = async (): Promise<number> => 1e6 * (await metric('process_cpu_seconds_total'))
  return {
    upstream,
    publicUrl,
    port,
    residentBytes,
    peakBytes() {
      const status = readFileSync(`/proc/${server.child.pid}/status`, 'utf8')
      return 1024 * Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1])
    },
    memoryEach: growthOf(residentBytes, SETTLE_MS),
    redisEach: growthOf(redisBytes, SETTLE_MS),
    cpuEach: growthOf(cpuMicros, 0),
    async sessions(count) {
      const made: string[] = []
      await atOnce(
        count,
        async () =>
          void made.push(instance.cookie(await newSession(instance, { ...TOKENS, subject: `user ${made.length}` }))),
      )
      return made
    },
    async open(path, cookies, asks = true) {
      const opened: BrowserSocket[] = []
      await atOnce(cookies.length, async (index) => {
        const headers = { origin: publicUrl, cookie: cookies[index] ?? '' }
        const socket = new BrowserSocket(`ws://127.0.0.1:${port}${path}`, headers)
        t.teardown(() => socket.socket.terminate())
        opened.push(await socket.opened())
        if (asks) socket.socket.send('{"ping":1}')
        await socket.count(1)
      })
      return opened
    },
  }
}

/** Measures how much a figure has grown for each act, once things have settled. */
function growthOf(read: () => Promise<number>, settleMs: number): Measure {
  return async (count, act) => {
    const before = await read()
    await act()
    await delay(settleMs)
    return ((await read()) - before) / count
  }
}

/** Acts so many times, a few at once. */
export async function atOnce(count: number, act: (index: number) => Promise<unknown>): Promise<void> {
  let begun = 0
  const next = async (): Promise<void> => {
    while (begun < count) await act(begun++)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
}

function packageStart(): string {
  const file = new URL('../../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { scripts: { start: string } }).scripts.start
}
