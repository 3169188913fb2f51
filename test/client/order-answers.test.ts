import { test, type Test } from 'tap'
import { once, type Client } from '../../client/dist/client.js'
import { clientOf } from '../support/client/client-of.ts'
import { failure } from '../support/client/page-client.ts'
import { scriptedClient, type Event } from '../support/client/scripted-client.ts'

const TRANSFER = '/payment-agents/v1/transfer'
const LEFT = new Error('left')

/** An order of a page that does not read the answer, and how often the package has called the page. */
async function unread(
  t: Test,
  send: (client: Client, idempotencyKey: string) => Promise<unknown>,
  ...script: readonly Event[]
) {
  const { client, calls } = await scriptedClient(t, ...script)
  const seen = { made: 0, asked: 0 }
  const order = (isMade: () => boolean | Promise<boolean>) =>
    once(
      (key) => {
        seen.made++
        return send(client, key)
      },
      {
        isMade: () => {
          seen.asked++
          return isMade()
        },
      },
    )
  return { order, calls, seen }
}

const post = ({ api }: Client, idempotencyKey: string) => api(TRANSFER, { method: 'POST', body: '{}', idempotencyKey })

const postStream = ({ api }: Client, idempotencyKey: string) => {
  const init = { method: 'POST', body: new Blob(['{}']).stream(), duplex: 'half', idempotencyKey } as const
  return api(TRANSFER, init)
}

const postAndRead = async (client: Client, idempotencyKey: string): Promise<unknown> => {
  await post(client, idempotencyKey)
  return client.api('/v1/health', { idempotencyKey })
}

await test('once(): the answer must arrive whole, also when the page does not read it; the call is repeated, and not the page', async (t) => {
  const { order, calls, seen } = await unread(t, post, 'cut in the body')
  t.match(await order(() => false), { status: 200 })
  t.equal(calls.length, 2)
  t.same(seen, { made: 1, asked: 1 })
})

await test('once(): isMade is asked once for each attempt, also when it finds the order, or fails', async (t) => {
  const found = await unread(t, post, 'cut')
  t.equal(await found.order(() => true), undefined)
  t.same(found.seen, { made: 1, asked: 1 })
  const failed = await unread(t, post, 'cut')
  const error = await failure(failed.order(() => Promise.reject(LEFT)))
  t.match(error, { outcome: 'unknown', cause: LEFT, message: /^order [\w-]+: no response$/ })
  t.same(failed.seen, { made: 1, asked: 1 })
})

await test('once(): a body that is a stream is sent again only by the page, which has to make another one', async (t) => {
  const { order, calls, seen } = await unread(t, postStream, 'cut')
  t.match(await order(() => false), { status: 200 })
  t.same(seen, { made: 2, asked: 1 })
  t.equal(new Set(calls.map(({ key }) => key)).size, 1)
  t.equal(calls.length, 2)
})

await test('once(): a read with the key says nothing of the order that was answered before it', async (t) => {
  const { order, calls, seen } = await unread(t, postAndRead, [200, ''], [404, ''])
  t.equal(await order(() => true), undefined)
  t.equal(calls.length, 2)
  t.same(seen, { made: 1, asked: 1 }, 'the order may have been made')
})

await test('once(): an order that is aborted while its answer arrives has an unknown outcome', async (t) => {
  const abort = new AbortController()
  const { api } = await clientOf(t, ({ url }, response) => {
    if (url === '/auth/session') return void response.end('{}')
    response.writeHead(200, { 'content-length': '10' }).write('{"a"', () => setTimeout(() => abort.abort(LEFT), 50))
  })
  const order = (idempotencyKey: string) => api(TRANSFER, { method: 'POST', idempotencyKey, signal: abort.signal })
  let asked = 0
  const error = await failure(once(order, { isMade: () => asked++ > 0 }))
  t.match(error, { code: 'aborted', outcome: 'unknown' })
  t.equal(asked, 1)
})

await test('the key of an order that is over belongs to no order: a call with it returns before its answer is whole', async (t) => {
  const { client } = await scriptedClient(t, [200, ''], 'cut in the body')
  let used = ''
  await once(async (key) => post(client, (used = key)), { isMade: () => false })
  const response = await post(client, used)
  t.equal(response.status, 200)
  await t.rejects(response.text(), TypeError)
})
