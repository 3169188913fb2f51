import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { freePort } from '../../../sandbox/listening.ts'
import { BUDGET_CLASSES, type BudgetClass } from '../../../src/config/upstream-budget.ts'
import { sendTo, ACCOUNTS } from '../user.ts'
import { countingUpstream, type CountingUpstream } from './counting-upstream.ts'
import { JarBrowser } from '../browser/jar-browser.ts'
import { ready, serverProcess } from '../server/server-process.ts'
import { logIn } from '../parts.ts'
import { startParts } from '../world.ts'
const STEPPING_CLOCK = fileURLToPath(new URL('../time/stepping-clock.ts', import.meta.url))
const CLASSES = BUDGET_CLASSES
/** A start waits for tokens for up to three leases of 15 s. */
const START_MS = 120_000

/** What became of the calls of a class, as browsers see it. */
export interface Tally {
  asked: number
  sent: number
  /** By the budget. */
  refused: number
  /** Because nobody answered. */
  failed: number
}

/** How many instances and users there are, and whether one instance has two workers and another a clock that jumps. */
interface FleetShape {
  readonly count: number
  readonly users: number
  readonly isOdd: boolean
}

const FOUR_ODD: FleetShape = { count: 4, users: 8, isOdd: true }

/** Instances as processes, and their upstream. */
export class BudgetFleet {
  readonly upstream: CountingUpstream
  readonly tallies: Record<BudgetClass, Tally> = { orders: tally(), otps: tally(), reads: tally() }
  /** The orders of the user who floods. */
  readonly ofFlood = tally()
  readonly #t: Test
  readonly #settings: Readonly<Record<string, string>>
  readonly #ports: number[] = []
  readonly #cookies: string[] = []
  readonly #shape: FleetShape

  private constructor(
    t: Test,
    upstream: CountingUpstream,
    settings: Readonly<Record<string, string>>,
    shape: FleetShape,
  ) {
    this.#t = t
    this.#shape = shape
    this.upstream = upstream
    this.#settings = settings
  }

  /** Starts a fleet that ends with the test, and logs its users in. */
  static async start(t: Test, redisUrl: string, budget: string, shape = FOUR_ODD): Promise<BudgetFleet> {
    const { count, users } = shape
    const upstream = await countingUpstream(t)
    const ports: number[] = []
    for (let each = 0; each < count; each++) ports.push(await freePort())
    const publicUrl = `http://localhost:${ports[0]}`
    const own = {
      PUBLIC_URL: publicUrl,
      API_URL: upstream.url,
      WS_URL: upstream.url.replace('http', 'ws'),
      REDIS_URL: redisUrl,
      AUTH_STARTS_PER_MINUTE: '0',
      LOG_LEVEL: 'error',
      UPSTREAM_BUDGET: budget,
      UPSTREAM_BUDGET_INSTANCES: String(shape.isOdd ? count + 1 : count),
    }
    const { settings } = await startParts(t, { upstream: 'none', settings: own })
    const fleet = new BudgetFleet(t, upstream, settings, shape)
    fleet.#ports.push(...ports)
    await Promise.all(ports.map((_port, at) => fleet.#launch(at)))
    for (let each = 0; each <= users; each++) {
      const browser = new JarBrowser()
      await logIn(browser, publicUrl, `user${each}@example.test`)
      const url = new URL(publicUrl)
      fleet.#cookies.push(browser.cookieHeader(url, url))
    }
    return fleet
  }

  /** Starts an instance. The last may have two workers, the one before it a clock that jumps. */
  async #launch(at: number): Promise<void> {
    const { isOdd } = this.#shape
    const hasWorkers = isOdd && at === this.#ports.length - 1
    const server = await serverProcess(
      this.#t,
      { ...this.#settings, PORT: String(this.#ports[at]), ...(hasWorkers && { WORKERS: '2' }) },
      isOdd && at === this.#ports.length - 2 ? { nodeOptions: ['--import', STEPPING_CLOCK] } : {},
    )
    const from = performance.now()
    if (!(await ready(server, START_MS))) throw new Error(`an instance does not start: ${server.output().stderr}`)
    this.#t.comment(`instance ${at} is ready after ${Math.round((performance.now() - from) / 100) / 10} s`)
  }

  /** Asks for so many calls a second of each class, of any instance and session, for a while. */
  async load(rates: Readonly<Record<BudgetClass, number>>, forMs: number): Promise<void> {
    const until = performance.now() + forMs
    const pending = new Set<Promise<void>>()
    const run = async (budgetClass: BudgetClass): Promise<void> => {
      for (
        let due = performance.now();
        due < until;
        due += -Math.log(1 - Math.random()) * (1000 / rates[budgetClass])
      ) {
        await delay(Math.max(0, due - performance.now()))
        const call = this.#call(budgetClass).finally(() => pending.delete(call))
        pending.add(call)
      }
    }
    await Promise.all(CLASSES.filter((each) => rates[each] > 0).map(run))
    await Promise.all(pending)
  }

  /** One user, of none of the sessions that the load uses, sends so many orders at once, again and again, to any instance. */
  async flood(burst: number, everyMs: number, over: AbortSignal): Promise<void> {
    const cookie = this.#cookies[this.#shape.users] ?? ''
    while (!over.aborted) {
      const port = this.#ports[Math.floor(Math.random() * this.#ports.length)] ?? 0
      const calls = Array.from({ length: burst }, async () => {
        this.ofFlood.asked++
        this.ofFlood[await call(port, cookie, 'orders').catch(() => 'failed' as const)]++
      })
      await Promise.all([...calls, delay(everyMs)])
    }
  }

  async #call(budgetClass: BudgetClass): Promise<void> {
    const at = Math.floor(Math.random() * this.#ports.length)
    const port = this.#ports[at] ?? 0
    const cookie = this.#cookies[Math.floor(Math.random() * this.#shape.users)] ?? ''
    const tally = this.tallies[budgetClass]
    tally.asked++
    const outcome = await (budgetClass === 'otps' ? this.#open(port, cookie) : call(port, cookie, budgetClass)).catch(
      () => 'failed' as const,
    )
    tally[outcome]++
    if (outcome === 'refused' && tally === this.tallies.orders) {
      this.#t.comment(`${Math.round(performance.now() / 1000)} s: an order is refused by instance ${at}`)
    }
  }

  async #open(port: number, cookie: string): Promise<keyof Tally> {
    const headers = { cookie, origin: this.#settings['PUBLIC_URL'] ?? '' }
    const socket = new WebSocket(`ws://127.0.0.1:${port}/ws/trading/DEMO1`, { headers })
    const [code, reason] = await new Promise<[number, string]>((resolve) => {
      socket.on('error', () => resolve([0, '']))
      socket.on('close', (code, reason) => resolve([code, reason.toString()]))
    })
    // Upstream has refused it.
    if (code === 4403 || reason.startsWith('rate_limited')) return 'sent'
    return reason.startsWith('upstream_budget') ? 'refused' : 'failed'
  }
}

async function call(port: number, cookie: string, budgetClass: BudgetClass): Promise<keyof Tally> {
  const headers = { cookie, 'x-csrf': '1', 'content-type': 'application/json' }
  const isRead = budgetClass === 'reads'
  const answered = sendTo(port, isRead ? 'GET' : 'POST', ACCOUNTS, isRead ? { headers } : { headers, body: '{}' })
  // A stopped instance answers nobody.
  const { status, text } = await Promise.race([answered, delay(20_000, { status: 0, text: '' }, { ref: false })])
  answered.catch(() => undefined)
  if (status === 200) return 'sent'
  if (status !== 429) return 'failed'
  return text.includes('upstream_budget') ? 'refused' : 'sent'
}

function tally(): Tally {
  return { asked: 0, sent: 0, refused: 0, failed: 0 }
}
