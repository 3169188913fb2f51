import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { feedWorld, reply, type FeedBrowser, type FeedWorld, type Message } from '../support/feed/world.ts'
import { LaggingSeries } from '../support/feed/lagging-series.ts'
import { seededRandom } from '../support/time/seeded-random.ts'
import { until } from '../support/time/until.ts'

const MORE_RUNS = process.env['RUNS']
/** Symbols whose sessions are played at once, and how often. `RUNS=20 npm test -- test/sockets/feed-lag.test.ts` plays new ones. */
const SYMBOLS = 48
const RUNS = Number(MORE_RUNS ?? 1)
const SEED = Number(process.env['SEED'] ?? (MORE_RUNS === undefined ? 1 : randomInt(2 ** 31)))
const STEPS = 150
/**
 * How many ticks all histories of a session have; undefined for candles. If a stream began with fewer than a history has, nobody
 * could tell which of several equal prices of a second it ends with.
 */
const COUNTS = [1, undefined, 2, 5, undefined, 100]

interface Asked {
  readonly id: number
  readonly granularity: number | undefined
  isForgotten: boolean
}

/** A browser, and what it has asked. It has one subscription at a time. */
interface Member {
  readonly browser: FeedBrowser
  readonly asked: Asked[]
  isGone: boolean
}

/** Members of one symbol, while its connections lag. */
class Session {
  readonly #series: LaggingSeries
  readonly #random: () => number
  readonly #join: FeedWorld['join']
  readonly #members: Member[] = []
  readonly #areCandles: boolean
  readonly #requests: Message[]

  constructor(series: LaggingSeries, random: () => number, join: FeedWorld['join'], count: number | undefined) {
    this.#areCandles = count === undefined
    this.#series = series
    this.#random = random
    this.#join = join
    const shapes: Message[] =
      count === undefined
        ? [{ granularity: 60 }, { granularity: 120 }, {}].map((shape) =>
            Object.assign(shape, { style: 'candles', count: 1 }),
          )
        : [{ count }, { count, style: 'ticks' }, { count, start: 1 }]
    const ask = { ticks_history: series.symbol, end: 'latest', subscribe: 1 }
    this.#requests = shapes.map((shape) => Object.assign(shape, ask))
  }

  /** @returns what was wrong */
  async play(): Promise<string[]> {
    for (let step = 0; step < STEPS; step++) {
      await this.#step(this.#random() * 100)
      if (this.#random() < 0.3) await delay(this.#random() * 4)
    }
    // Now everything arrives, and the last second and candle are passed.
    this.#series.move(3, 200)
    await until(() => {
      this.#series.answer(Infinity)
      this.#series.tell(Infinity, true)
      return this.#members.every((member) => this.#isComplete(member))
    }, `all members of ${this.#series.symbol} have the last price`).catch(() => undefined)
    const faults = this.#members.flatMap((member, at) => this.#faults(member).map((fault) => `member ${at}: ${fault}`))
    // This frees the places of its streams for the next sessions.
    for (const member of this.#members) this.#leave(member)
    return faults
  }

  async #step(chance: number): Promise<void> {
    const present = this.#members.filter(({ isGone }) => !isGone)
    const member = present[this.#below(present.length)]
    if (chance < 10 || member === undefined)
      this.#members.push({ browser: await this.#join(), asked: [], isGone: false })
    else if (chance < 32) this.#ask(member)
    else if (chance < 37) this.#forget(member)
    else if (chance < 39) this.#leave(member)
    else if (chance < 41) this.#series.move(this.#below(200), this.#areCandles ? 0 : 1)
    else if (chance < 60) this.#series.move(1 + this.#below(5), this.#below(3))
    else if (chance < 82) this.#series.tell(1 + this.#below(12))
    else this.#series.answer(1 + this.#below(3))
  }

  #ask({ browser, asked }: Member): void {
    if (asked.at(-1)?.isForgotten === false) return
    const request = this.#requests[this.#below(this.#requests.length)] ?? {}
    const granularity = request['granularity'] as number | undefined
    asked.push({ id: asked.length, granularity, isForgotten: false })
    browser.send({ ...request, req_id: asked.length - 1 })
  }

  #forget({ browser, asked }: Member): void {
    const last = asked.at(-1)
    const id = receivedBy(browser).find(({ req_id }) => req_id === last?.id)?.['subscription'] as Message | undefined
    if (last === undefined || id === undefined || last.isForgotten) return
    last.isForgotten = true
    browser.send({ forget: id['id'], req_id: 1000 + last.id })
  }

  #leave(member: Member): void {
    member.isGone = true
    member.browser.client.socket.terminate()
  }

  #isComplete({ browser, asked, isGone }: Member): boolean {
    const last = asked.at(-1)
    if (isGone || last === undefined || last.isForgotten) return true
    const newest = receivedBy(browser).findLast(({ req_id }) => req_id === last.id)
    return newest?.['place'] === this.#series.length - 1
  }

  #faults(member: Member): string[] {
    const received = receivedBy(member.browser)
    const faults = member.asked.map((asked) => {
      const end = received.findIndex(({ req_id }) => req_id === 1000 + asked.id)
      const all = received.filter(({ req_id }) => req_id === asked.id)
      const late = end < 0 ? [] : received.slice(end).filter(({ req_id }) => req_id === asked.id)
      return late.length > 0 ? `${late.length} messages of a forgotten stream` : this.#fault(asked, all)
    })
    if (!this.#isComplete(member)) faults.push('it waits for ever')
    return faults.filter((fault) => fault !== undefined)
  }

  #fault({ granularity }: Asked, [history, ...stream]: readonly Message[]): string | undefined {
    const places = stream.map(({ place }) => Number(place))
    const [first] = places
    if (history === undefined || first === undefined) return undefined
    const gap = places.findIndex((place, index) => place !== first + index)
    if (gap >= 0) return `place ${places[gap]} after ${places[gap - 1]}`
    const place = Number(history['place'])
    const shown = JSON.stringify((history['candles'] as Message[] | undefined)?.at(-1))
    // Equal prices of a second, and equal states of a candle, cannot be told apart: the history may be taken for one that ends
    // elsewhere.
    const isPart = this.#areCandles
      ? JSON.stringify(this.#series.candleAt(first - 1, granularity)) === shown
      : this.#series.endsWith(history['history'] ?? {}, first)
    return isPart ? undefined : `the history ends with place ${place}, the stream begins with ${first}`
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit)
  }
}

function receivedBy({ client }: FeedBrowser): Message[] {
  return client.texts.map((text) => JSON.parse(text) as Message)
}

await test('PUBLIC_FEED=shared: histories ahead of and behind their streams are continued without a gap', async (t) => {
  const settings = { FEED_REQUESTS_PER_MINUTE: '100000', FEED_LINGER_SECONDS: '0', MAX_PUBLIC_RELAYS_PER_IP: '10000' }
  const { market, join } = await feedWorld(t, { ...settings, PUBLIC_HANDSHAKES_PER_MINUTE: '0', LOG_LEVEL: 'warn' })
  const all = new Map<string, LaggingSeries>()
  market.auto = (request) => {
    const { ticks_history: symbol, forget, ping } = request.message
    // After a minute without an answer to these, the feed would give its connections up.
    if (ping !== undefined) reply(request, { msg_type: 'ping', ping: 'pong' })
    const series = [...all.values()].find((each) => each.symbol === symbol || each.has(forget))
    series?.take(request)
    return true
  }
  for (let run = 0; run < RUNS; run++) {
    const sessions = Array.from({ length: SYMBOLS }, (_, index) => {
      const { random } = seededRandom(SEED + run * SYMBOLS + index)
      const count = COUNTS[index % COUNTS.length]
      const series = new LaggingSeries(`R_${run * SYMBOLS + index}`, random)
      all.set(series.symbol, series)
      return new Session(series, random, join, count)
    })
    const faults = await Promise.all(sessions.map((session) => session.play()))
    t.same(faults.flat(), [], `SEED=${SEED} RUNS=${RUNS}`)
  }
})
