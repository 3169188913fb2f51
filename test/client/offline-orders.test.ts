import type { RequestListener } from 'node:http'
import { test, type Test } from 'tap'
import { once, type Client } from '../../client/dist/client.js'
import { clientOf } from '../support/client/client-of.ts'
import { failure } from '../support/client/page-client.ts'
import { PROBLEM, problemBody } from '../support/client/own-problem.ts'

// In a process of its own: it gives the whole process a browser's storage.

const TRANSFER = '/payment-agents/v1/transfer'
const NOT_SENT = { name: 'ApiError', code: 'not_sent', status: 0, outcome: undefined, problem: undefined }

/** A client, the calls of the API that reach its server, and whether the browser reports that it is offline. */
interface OfflineWorld {
  readonly client: Client
  readonly calls: string[]
  isOnline: boolean
}

async function offlineWorld(t: Test, respond: RequestListener): Promise<OfflineWorld> {
  const calls: string[] = []
  const client = await clientOf(t, (request, response) => {
    if (request.url?.startsWith('/auth/')) {
      return void response.end(
        '{"authenticated":true,"now":1,"expires_at":9,"idle_expires_at":9,"scope":"","session":"s"}',
      )
    }
    calls.push(`${request.method}`)
    respond(request, response)
  })
  const world: OfflineWorld = { client, calls, isOnline: false }
  Object.defineProperty(globalThis.navigator, 'onLine', { configurable: true, get: () => world.isOnline })
  t.teardown(() => void Reflect.deleteProperty(globalThis.navigator, 'onLine'))
  return world
}

for (const idempotencyKey of [undefined, true, 'a-key'] as const) {
  await test(`offline, a transfer with the key ${idempotencyKey} rejects with not_sent, and never leaves`, async (t) => {
    const world = await offlineWorld(t, (_request, response) => response.end('{}'))
    const init = { method: 'POST', body: '{}', ...(idempotencyKey && { idempotencyKey }) } as const
    t.match(await failure(world.client.api(TRANSFER, init)), NOT_SENT)
    t.same(world.calls, [])
    world.isOnline = true
    t.equal((await world.client.api(TRANSFER, init)).status, 200, 'the key has not been used')
    t.same(world.calls, ['POST'])
  })
}

await test('offline, once() rejects with not_sent and does not ask whether the order was made', async (t) => {
  const { client, calls } = await offlineWorld(t, (_request, response) => response.end('{}'))
  const order = once((idempotencyKey) => client.api(TRANSFER, { method: 'POST', idempotencyKey }), {
    isMade: () => t.fail('asked'),
  })
  t.match(await failure(order), NOT_SENT)
  t.same(calls, [])
})

await test('a key whose first call may have been executed has an unknown outcome offline, not not_sent', async (t) => {
  const world = await offlineWorld(t, (_request, response) => {
    world.isOnline = false
    response.writeHead(409, { ...PROBLEM, 'retry-after': '0' })
    response.end(problemBody('idempotency_in_progress'))
  })
  world.isOnline = true
  const transfer = world.client.api(TRANSFER, { method: 'POST', idempotencyKey: 'a-key' })
  t.match(await failure(transfer), { name: 'ApiError', outcome: 'unknown' })
  t.same(world.calls, ['POST'])
})

await test('offline, a GET is tried, and a call that the network loses has an unknown outcome', async (t) => {
  const world = await offlineWorld(t, (request, response) => {
    world.isOnline = false
    if (request.method === 'GET') response.end('{}')
    else request.socket.destroy()
  })
  t.equal((await world.client.api('/trading/v1/options/accounts')).status, 200)
  world.isOnline = true
  t.match(await failure(world.client.api(TRANSFER, { method: 'POST' })), { code: undefined, outcome: 'unknown' })
  const left = world.client.api(TRANSFER, { method: 'POST', signal: AbortSignal.abort(new Error('left')) })
  t.match(await failure(left), { message: 'left' })
})
