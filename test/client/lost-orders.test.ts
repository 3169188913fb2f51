import { test, type Test } from 'tap'
import { SocketError, type TradingSocket } from '../../client/dist/client.js'
import { fate, type Fate } from '../../client/dist/client/orders.js'
import { lossyAccount, type Handling, type LossyAccount, type Offer } from '../support/client/lossy-account.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { seededRandom } from '../support/time/seeded-random.ts'
import { until } from '../support/time/until.ts'

/** How many orders are lost. `LOST_ORDERS=500 npm test -- test/client/lost-orders.test.ts` takes one and a half minutes. */
const RUNS = Number(process.env['LOST_ORDERS'] ?? 30)
const WATCH_MS = 15_000

/** Where the answer to an order is lost. */
const POINTS: Readonly<Record<string, Handling>> = {
  'before it arrives': { executes: 'never', answer: 'cut' },
  'after it was executed': { executes: 'at once', answer: 'cut' },
  'before it is executed': { executes: 'late', answer: 'cut' },
  'and the contract has ended': { executes: 'at once', answer: 'cut' },
  'with the server, which is killed': { executes: 'at once', answer: 'cut' },
  'with the server, before it arrives': { executes: 'never', answer: 'cut' },
  'at a page that gives up': { executes: 'at once', answer: 'held' },
  'at a page that gives up, before it is executed': { executes: 'late', answer: 'held' },
  'at a page that gives up, and it is refused': { executes: 'never', answer: 'held' },
}

/** What happens to an equal order. */
const TWINS: readonly Handling[] = [
  { executes: 'at once', answer: 'sent' },
  { executes: 'never', answer: 'refused' },
  ...Object.values(POINTS),
]

/** What else happens to an order. */
interface Run {
  readonly point: string
  readonly offer: Offer
  /** What happens to an equal order that the page sends at the same time. */
  readonly twin: Handling | undefined
  readonly isTwinFirst: boolean
  /** The operations with which the connection is lost again, while the account is looked at. */
  readonly cutsAt: readonly string[]
  readonly cutsWhileWatching: boolean
  readonly answersWhileWatching: boolean
  readonly isSilent: boolean
  readonly aheadMs: number
}

function randomRun(random: () => number, index: number): Run {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const is = (probability: number): boolean => random() < probability
  return {
    point: pick(Object.keys(POINTS)),
    // No two runs have equal orders.
    offer: {
      contract_type: pick(['CALL', 'PUT']),
      underlying_symbol: pick(['R_50', 'R_100']),
      amount: 10 + index / 100,
    },
    twin: is(0.3) ? pick(TWINS) : undefined,
    isTwinFirst: is(0.5),
    cutsAt: is(0.3) ? [pick(['time', 'transaction', 'portfolio', 'profit_table', 'statement'])] : [],
    cutsWhileWatching: is(0.2),
    answersWhileWatching: is(0.5),
    isSilent: is(0.3),
    aheadMs: pick([-7_200_000, 0, 0, 800, 7_200_000]),
  }
}

/** What became of an order, and what the package says about it. */
interface Verdict {
  readonly truth: number | bigint | string | undefined
  readonly said: Fate | 'refused'
}

/** Loses orders on one account, and asks for their fate. */
class Loser {
  readonly account: LossyAccount
  readonly #socket: TradingSocket
  readonly #watch: HeldTimers
  #orders = 0
  /** How often the account could not be read. */
  failures = 0

  constructor(account: LossyAccount, socket: TradingSocket, watch: HeldTimers) {
    this.account = account
    this.#socket = socket
    this.#watch = watch
  }

  async lose(run: Run): Promise<Verdict[]> {
    const { account } = this
    const handling = POINTS[run.point] as Handling
    Object.assign(account, { aheadMs: run.aheadMs, isSilent: false, cuts: () => false })
    // Everything that could be taken for the contract of the order.
    account.buyElsewhere(run.offer, 60)
    account.buyElsewhere({ ...run.offer, amount: run.offer.amount + 1 })
    account.buyElsewhere({ ...run.offer, contract_type: 'ONETOUCH' })
    await this.#opened()
    const both = [handling, ...(run.twin ? [run.twin] : [])]
    const orders = both.map((each) => ({ each, order: ++this.#orders }))
    const byOrder = new Map(orders.map(({ each, order }) => [order, each]))
    account.handling = (order) => byOrder.get(order) as Handling
    const sent = await this.#send(run.offer, run.isTwinFirst ? orders.toReversed() : orders)
    if (run.point.startsWith('with the server')) {
      account.isDown = true
      await until(() => account.refused > 0)
      account.isDown = false
    }
    account.isSilent = run.isSilent
    let cutsLeft = run.cutsAt.length
    account.cuts = (operation) => run.cutsAt.includes(operation) && cutsLeft-- > 0
    if (run.point.endsWith('has ended')) for (const contract of account.contracts) contract.hasEnded = true
    const lost = sent.filter(({ error }) => error?.outcome === 'unknown')
    return Promise.all(
      lost.map(async ({ order, error }) => ({ said: await this.#fate(error, run), truth: account.truth.get(order) })),
    )
  }

  async #opened(): Promise<void> {
    await until(() => this.#socket.status().state === 'open')
    await this.#socket.request({ time: 1 })
  }

  async #send(offer: Offer, orders: readonly { order: number }[]) {
    const terms = { basis: 'stake', currency: 'USD', duration: 5, duration_unit: 't' } as const
    const { proposal } = await this.#socket.request({ proposal: 1, ...terms, ...offer })
    const commands = orders.map(async ({ order }) => {
      const command = { buy: proposal.id, price: proposal.ask_price, passthrough: { order } }
      const error = await this.#socket.command(command, { timeoutMs: 100 }).then(
        () => undefined,
        (error: unknown) => error as SocketError,
      )
      return { order, error }
    })
    return Promise.all(commands)
  }

  /** The fate of an order. Whatever is still to happen happens before the first 15 seconds are over. */
  async #fate(error: SocketError | undefined, run: Run): Promise<Fate | 'refused'> {
    const said = fate(error as SocketError)
    let isOver = false
    const drive = async (): Promise<void> => {
      for (let isFirst = true; ; isFirst = false) {
        await until(() => isOver || this.#watch.size > 0)
        if (isOver) return
        if (isFirst) await this.#meanwhile(run)
        this.#watch.run()
      }
    }
    const driving = drive()
    try {
      return await said
    } catch (reason) {
      const { code } = reason as SocketError
      if (code === 'PriceMoved') return 'refused'
      if (code !== 'connection_lost') throw reason
      this.failures++
      isOver = true
      return await this.#fate(error, { ...run, cutsWhileWatching: false })
    } finally {
      isOver = true
      await driving
    }
  }

  async #meanwhile(run: Run): Promise<void> {
    if (run.cutsWhileWatching) {
      const { connections } = this.account
      this.account.cut()
      // It may be open again before anybody has looked.
      await until(() => this.#socket.status().state !== 'open' || this.account.connections > connections)
    }
    this.account.executeLate()
    if (run.answersWhileWatching) this.account.answerHeld()
    if (!run.cutsWhileWatching) await this.#socket.request({ ping: 1 }).catch(() => undefined)
  }
}

async function startLoser(t: Test): Promise<Loser> {
  const watch = new HeldTimers(t, 'setTimeout', WATCH_MS)
  const { account, socket } = await lossyAccount(t)
  return new Loser(account, socket, watch)
}

await test(`of ${RUNS} lost orders, none is made that was not, and none is not seen that the account shows 15 seconds later`, async (t) => {
  const { seed, random } = seededRandom()
  const loser = await startLoser(t)
  const counts = new Map<string, number>()
  const count = (name: string): unknown => counts.set(name, (counts.get(name) ?? 0) + 1)
  for (let index = 0; index < RUNS; index++) {
    const run = randomRun(random, index)
    for (const { said, truth } of await loser.lose(run)) {
      const is = said === 'refused' ? said : said.is
      const what = `SEED=${seed} run ${index}: ${is}, in truth ${truth}: ${JSON.stringify(run)}`
      count(`${is}${is === 'ambiguous' ? (truth ? ', made' : ', not made') : ''}`)
      if (said === 'refused' || said.is === 'not_seen') t.equal(truth, undefined, what)
      else if (said.is === 'made') t.equal(said.contract.contract_id, truth, what)
      else {
        t.ok(run.twin, `only with an equal order: ${what}`)
        t.ok(truth === undefined || said.candidates.some(({ contract_id: id }) => id === truth), what)
      }
    }
  }
  t.comment(`SEED=${seed}: ${JSON.stringify(Object.fromEntries(counts))}, ${loser.failures} had to ask again`)
  t.ok((counts.get('made') ?? 0) > 0 && (counts.get('not_seen') ?? 0) > 0)
})
