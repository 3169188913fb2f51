import type { Test } from 'tap'
import { freePort } from '../../../sandbox/listening.ts'
import { ready, serverProcess, type ServerProcess } from '../server/server-process.ts'
import { StallingProxy } from './stalling-proxy.ts'
import { TradingService } from './trading-service.ts'
import { startParts } from '../world.ts'

const PAGE = (script: string): string =>
  `<!doctype html><title>page</title><script type="module" src="${script}"></script>`

/** The pages of the server, whose Content-Security-Policy allows no inline script. */
const FILES = {
  'index.html': PAGE('/app.js'),
  'other.html': '<!doctype html><title>other</title>',
  'app.js': `import { createClient } from '/client.js'
    const faults = (globalThis.faults = [])
    addEventListener('error', ({ message }) => faults.push(message))
    addEventListener('unhandledrejection', ({ reason }) => faults.push(String(reason)))
    addEventListener('pageshow', ({ persisted }) => (globalThis.isRestored = persisted))
    globalThis.client = createClient()
    client.session.subscribe(() => undefined)
    globalThis.trade = (symbols) => {
      globalThis.socket = client.tradingSocket('VRTC100')
      globalThis.states = []
      globalThis.quotes = Object.fromEntries(symbols.map((symbol) => [symbol, []]))
      socket.onStatus(() => states.push(socket.status().state))
      for (const symbol of symbols) socket.subscribe({ ticks: symbol }, ({ tick }) => quotes[symbol].push(tick.quote))
    }
    globalThis.buy = () => socket.command({ buy: 'a-proposal', price: 10 }).then(() => 'bought', ({ code }) => code)`,
}

/**
 * Two instances of the server, each a process of its own, on one Redis. Browsers reach them through a network that can
 * stall and that leads new connections to one of the two.
 */
export interface NetworkWorld {
  /** The address of the server for browsers. */
  readonly url: string
  readonly network: StallingProxy
  readonly service: TradingService
  /** Leads new connections to the other instance, then kills the present one, which cannot close its connections. */
  killPresent(): Promise<void>
  /** Starts the killed instance again, and leads new connections to it. */
  restartKilled(): Promise<void>
  /** Kills both instances. */
  killAll(): Promise<void>
}

/** Starts a world that ends with the test. */
export async function networkWorld(t: Test): Promise<NetworkWorld> {
  const ports = [await freePort(), await freePort()] as const
  let present = 0
  const network = await StallingProxy.start(t, () => Number(ports[present]))
  const url = `http://localhost:${network.port}`
  const own = { PUBLIC_URL: url, STATIC_DIR: t.testdir(FILES) }
  const { upstream, settings } = await startParts(t, { upstream: 'scripted', redis: true, settings: own })
  const start = async (port: number): Promise<ServerProcess> => {
    const server = await serverProcess(t, { ...settings, PORT: String(port) })
    if (!(await ready(server))) throw new Error(server.output().stderr)
    return server
  }
  const instances = await Promise.all(ports.map(start))
  const kill = async (index: number): Promise<void> => {
    instances[index]?.child.kill('SIGKILL')
    await instances[index]?.exited
  }
  return {
    url,
    network,
    service: new TradingService(upstream),
    async killPresent() {
      present = 1 - present
      await kill(1 - present)
    },
    async restartKilled() {
      instances[1 - present] = await start(Number(ports[1 - present]))
      present = 1 - present
    },
    async killAll() {
      await Promise.all([kill(0), kill(1)])
    },
  }
}
