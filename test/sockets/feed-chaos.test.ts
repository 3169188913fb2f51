import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { ChaosBrowser } from '../support/feed/chaos-browser.ts'
import { ChaosUpstream } from '../support/feed/chaos-upstream.ts'
import { PUBLIC, relayWorld } from '../support/sockets/relay-world.ts'
import { seededRandom } from '../support/time/seeded-random.ts'

const BROWSERS = 20
/** Those that subscribe to nothing, and are closed only if an answer is lost. */
const READERS = 3
const CHAOS_MS = Number(process.env['CHAOS_MS'] ?? 1200)
/** Longer than a browser waits for a connection, and than a stream waits for those who come back. */
const PATIENCE_MS = 20_000

interface Run {
  readonly chaosMs: number
  readonly patienceMs: number
  readonly isCalm: boolean
  /** Takes a message to a browser, or spoils it. */
  readonly deliver: (text: string, take: (text: string) => void) => void
}

const deliver: Run['deliver'] = (text, take) => take(text)
const isAnswer = (text: string): boolean => text.includes('"msg_type":"any"')
const isPrice = (text: string): boolean => text.includes('"generation"')

/** Waits for a condition. @returns whether it came to hold in time */
async function waited(ms: number, check: () => boolean | Promise<boolean>): Promise<boolean> {
  const until = performance.now() + ms
  while (!(await check())) {
    if (performance.now() > until) return false
    await delay(20)
  }
  return true
}

/** Lets browsers come, ask and go. @returns what is wrong */
async function faultsOf(t: Test, random: () => number, run: Run): Promise<string[]> {
  const { chaosMs, patienceMs, isCalm } = run
  const shortly = (): string => (random() < 0.5 ? '0' : '1')
  const world = await relayWorld(t, {
    anonymous: true,
    settings: {
      PUBLIC_FEED: 'shared',
      PUBLIC_HANDSHAKES_PER_MINUTE: '0',
      MAX_PUBLIC_RELAYS_PER_IP: '1000',
      MAX_UPSTREAM_MESSAGE_BYTES: '65536',
      FEED_LINGER_SECONDS: shortly(),
      FEED_RECONNECT_SPREAD_SECONDS: shortly(),
      FEED_CACHE_SECONDS: shortly(),
      FEED_REQUESTS_PER_MINUTE: '100000',
      FEED_SUBSCRIPTIONS: '30',
      FEED_SUBSCRIPTIONS_PER_SOCKET: random() < 0.5 ? '3' : '100',
    },
  })
  const upstream = new ChaosUpstream(world.upstream, random)
  t.teardown(() => upstream.stop())
  if (isCalm) upstream.calm()
  const all: ChaosBrowser[] = []
  const join = (): ChaosBrowser => {
    const browser = new ChaosBrowser(world.connect(PUBLIC), random, run.deliver)
    all.push(browser)
    return browser
  }
  const present = Array.from({ length: BROWSERS }, join)
  await waited(chaosMs, () => {
    for (const [index, browser] of present.entries()) {
      if (browser.end !== undefined) present[index] = join()
      else if (random() < 0.5) browser.act(index < READERS)
    }
    return false
  })
  upstream.calm()
  const late = (): string[] => all.flatMap((browser) => browser.late(upstream.price))
  await waited(patienceMs, () => late().length === 0)
  const faults = [...late(), ...all.flatMap(({ faults }) => faults)]
  for (const { end, isLeaving, hasSubscribed, isIdle } of all) {
    if (end === undefined || isLeaving) continue
    // A message that was too big is their own affair.
    const isKnown = end.code === 1009 || (end.code === 1013 && end.reason === 'upstream_lost')
    if (!isKnown) faults.push(`closed with ${end.code} ${end.reason}`)
    if (end.code === 1013 && !hasSubscribed && isIdle) faults.push('closed although nothing was lost')
  }
  for (const browser of all) browser.leave()
  const gauges = ['streams', 'taken_places', 'subscribers', 'own_sockets'].map((name) => `bff_feed_${name}`)
  const left = async (): Promise<unknown[]> => [
    upstream.size,
    ...(await Promise.all(gauges.map(async (name) => (await world.metric(name)).get('')))),
  ]
  if (!(await waited(patienceMs, async () => (await left()).every((count) => count === 0)))) {
    faults.push(`left behind: ${JSON.stringify(await left())}`)
  }
  for (const line of world.server.log) if (Number(line['level']) >= 50) faults.push(JSON.stringify(line))
  return faults
}

await test('whatever upstream does, browsers get their answers and prices once and in order, or are closed', async (t) => {
  const { seed, random } = seededRandom()
  const faults = await faultsOf(t, random, { chaosMs: CHAOS_MS, patienceMs: PATIENCE_MS, isCalm: false, deliver })
  t.same(faults.slice(0, 3), [], `SEED=${seed}`)
})

await test('a fault of the server would be found', async (t) => {
  const spoilt: readonly (readonly [string, (text: string) => boolean, (text: string) => string[]])[] = [
    ['an answer is lost', isAnswer, () => []],
    ['an answer comes twice', isAnswer, (text) => [text, text]],
    ['an answer is for another browser', isAnswer, (text) => [text.replaceAll(/"req_id":\d+/g, '"req_id":999999')]],
    ['a price comes twice', isPrice, (text) => [text, text]],
  ]
  const run = { chaosMs: 300, patienceMs: 1500, isCalm: true }
  await Promise.all(
    spoilt.map(async ([what, concerns, spoil]) => {
      let isSpoilt = false
      const faults = await faultsOf(t, seededRandom(1).random, {
        ...run,
        deliver: (text, take) => {
          const isNow = !isSpoilt && concerns(text)
          isSpoilt ||= isNow
          for (const each of isNow ? spoil(text) : [text]) take(each)
        },
      })
      t.ok(isSpoilt && faults.length > 0, what)
    }),
  )
})
