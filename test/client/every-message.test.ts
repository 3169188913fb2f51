import { test, type Test } from 'tap'
import { ApiError, createClient, once } from '../../client/dist/client.js'
// The core loads it when an order first needs it, which takes a time that is not the test's.
import '../../client/dist/client/orders.js'
import { OrderNetwork, type Fault } from '../support/client/order-network.ts'

// In a process of its own: it gives the whole process another time, and a browser's storage.

const FAULTS: readonly Fault[] = [
  'is refused',
  'gets no response',
  'is lost silently',
  'gets a silent response',
  'gets a late response',
  'gets half a response',
  'gets half a response and no more',
  'is reloaded',
  'sleeps',
  'sleeps and loses its connections',
  'is clicked again',
  'may store nothing',
]
/** Longer than a call, its repetition, and the wait for one that is still running. */
const LONG_MS = 300_000
/** A repetition leaves at most 20 seconds after the call that failed, which may have taken a minute. */
const LATEST_MS = 100_000

interface Told {
  /** Undefined as long as the page waits. */
  is?: 'made' | 'not made' | 'unknown'
  error?: unknown
}

/** One order, and one thing that happens to it. @returns how many moments there were, and what went wrong */
async function play(t: Test, at: number, fault: Fault, remember: string | undefined) {
  const network = new OrderNetwork(at, fault)
  network.begin(t)
  const wrong: string[] = []
  const client = () => createClient({ baseUrl: 'http://server.test', fetch: network.page() })
  let page = client()
  const clicks: number[] = []
  let told: Told[] = []
  /** A user who knows that it was made, or who was asked to look, does not click again. */
  let isOver = false
  const click = async (): Promise<void> => {
    const { api } = page
    const one: Told = {}
    clicks.push(network.now)
    told.push(one)
    try {
      const order = (idempotencyKey: string) =>
        api('/payment-agents/v1/transfer', { method: 'POST', json: { data: {} } as never, idempotencyKey })
      await once(order, { remember })
      one.is = 'made'
    } catch (error) {
      one.error = error
      one.is = error instanceof ApiError && error.outcome === 'unknown' ? 'unknown' : 'not made'
    }
    isOver ||= one.is === 'made' || /another session/.test(causes(one.error))
    const { length } = network.made
    if (one.is === 'made' && length === 0) wrong.push('it is told that it was made')
    if (one.is === 'not made' && length > 0 && told.includes(one))
      wrong.push(`it is told that it was not made: ${causes(one.error)}`)
  }
  network.onPage = (does) => {
    if (does === 'load') {
      page = client()
      told = []
    }
    // Without a memory, another click is another order.
    if (remember !== undefined && !isOver) void click()
  }
  void click()
  await network.pass(LONG_MS)
  if (told.some(({ is }) => is === undefined)) wrong.push('it is told nothing')
  if (remember !== undefined && fault !== 'may store nothing' && !isOver) {
    void click()
    await network.pass(LONG_MS)
  }
  if (network.made.length > 1) wrong.push('it was made twice')
  const isLate = (left: number): boolean => left - (clicks.findLast((at) => at <= left) ?? 0) > LATEST_MS
  if (network.left.some(isLate)) wrong.push('it left late')
  return { moments: network.moments, wrong }
}

/** The messages of an error and its causes. */
const causes = (error: unknown): string => (error instanceof Error ? `${error.message} ${causes(error.cause)}` : '')

for (const remember of [undefined, 'transfer']) {
  await test(`whatever happens to one message of an order ${remember ? 'that is remembered' : 'with a key'}, it is made once at most, and the page hears the truth`, async (t) => {
    let played = 0
    for (const fault of FAULTS) {
      for (let at = 0; ; at++) {
        const { moments, wrong } = await play(t, at, fault, remember)
        t.same(wrong, [], `moment ${at} ${fault}`)
        played++
        if (at >= moments) break
      }
    }
    t.comment(`${played} orders`)
  })
}
