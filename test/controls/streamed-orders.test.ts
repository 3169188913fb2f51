import { PassThrough } from 'node:stream'
import { test, type Test } from 'tap'
import { controlsWorld, pause } from '../support/controls/controls-world.ts'
import { until } from '../support/time/until.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'

const PAUSED = { status: 503, json: { code: 'orders_paused' } }
/** Longer than a body that is sent only once it is complete. */
const BEGUN = 'x'.repeat(100_000)
const CHUNKED = { 'transfer-encoding': 'chunked' }

/** An instance, and orders of its users which have begun to arrive upstream. */
async function streaming(t: Test) {
  const world = await controlsWorld(t, { instances: 1 })
  const { upstream } = world
  let begun = 0
  const { onRest } = upstream
  upstream.onRest = (request, response) => {
    begun++
    onRest(request, response)
  }
  return {
    ...world,
    begin: async (subject: string, headers: Record<string, string> = CHUNKED) => {
      const user = await world.user(subject)
      const body = new PassThrough()
      body.write(BEGUN)
      const before = begun
      const answer = user.order({ headers, body })
      await until(() => begun === before + 1, 'the order has begun to arrive')
      return { body, answer }
    },
  }
}

for (const [lacks, rest, headers] of [
  ['its last chunk', 'y', CHUNKED],
  ['only the end of its chunks', '', CHUNKED],
  ['its last byte', 'y', { 'content-length': String(BEGUN.length + 1) }],
] as const) {
  await test(`an order that has begun to stream, and lacks ${lacks} when the pause comes, is not sent to its end`, async (t) => {
    const { begin, server, agreed, orders } = await streaming(t)
    const { body, answer } = await begin('CR1', headers)
    const { json } = await pause(server)
    await agreed(json['version'])
    body.end(rest)
    t.match(await answer, PAUSED)
    t.equal(orders.length, 0)
  })
}

await test('one whose user is not known is sent to its end once another user is known to be paused', async (t) => {
  const { begin, server, upstream, agreed, orders } = await streaming(t)
  const { onIdentity } = upstream
  upstream.onIdentity = (_request, response) => answerJson(response, 500, {})
  const own = await begin('CR1')
  const other = await begin('CR2')
  upstream.onIdentity = onIdentity
  const { json } = await pause(server, { subject: 'CR1' })
  await agreed(json['version'])
  own.body.end('own')
  other.body.write('oth')
  other.body.end('er')
  t.match(await own.answer, PAUSED)
  t.match(await other.answer, { status: 200 })
  t.same(
    orders.map((order) => order.slice(BEGUN.length)),
    ['other'],
  )
  t.equal(orders[0]?.slice(0, BEGUN.length) === BEGUN, true)
})
