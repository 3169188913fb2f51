import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { controlsWorld } from '../support/controls/controls-world.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'
import { ACCOUNTS } from '../support/user.ts'

/** Two seconds for a call with a key, and one for a one-time URL. */
const SETTINGS = { UPSTREAM_HEADERS_SECONDS: '1', UPSTREAM_BODY_SECONDS: '1' }

/** Blocks this thread, with the server and its upstream. What has been written has arrived. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

await test('an answer that arrives while the process stands still is read, although its time is over, and recorded', async (t) => {
  const world = await controlsWorld(t, { instances: 1, settings: SETTINGS })
  const { server, upstream } = world
  const user = await world.user('CR1')
  let made = 0
  upstream.onRest = (request, response) => {
    request.resume().on('end', () => {
      made++
      answerJson(response, 201, { data: { made } })
      block(2200)
    })
  }
  t.match(await user.order({ at: server, key: 'one', body: 'an order' }), { status: 201, json: { data: { made: 1 } } })
  t.match(await user.order({ at: server, key: 'one', body: 'an order' }), {
    status: 201,
    headers: { 'idempotency-replayed': 'true' },
    json: { data: { made: 1 } },
  })
})

await test('a one-time URL that arrives while the process stands still is used, although its time is over', async (t) => {
  const world = await controlsWorld(t, { instances: 1, settings: SETTINGS })
  const user = await world.user('CR1')
  const { onOtp } = world.upstream
  world.upstream.onOtp = (request, response) => {
    onOtp(request, response)
    block(1200)
  }
  const { browser } = await world.trade(user, world.server)
  t.equal(browser.socket.readyState, browser.socket.OPEN)
})

await test('an answer that arrives while the process stands still, at the end of the time for its headers, is read', async (t) => {
  const world = await controlsWorld(t, { instances: 1, settings: SETTINGS })
  const { server, upstream } = world
  const user = await world.user('CR1')
  /** @returns the status of the order, and whether it was answered in time: a busy machine may be late */
  const attempt = async (): Promise<{ readonly status: number; readonly wasInTime: boolean }> => {
    let reads = 0
    let order: ServerResponse | undefined
    let answeredAt = 0
    upstream.onRest = (request, response) => {
      if (request.method !== 'GET') order = response
      // Here, and not in a timer: the sockets would be read before the next one.
      else if (++reads === 2 && order !== undefined) {
        answeredAt = performance.now()
        answerJson(order, 201, { data: {} })
        block(1000)
      }
    }
    // undici measures in steps of half a second, which begin with this call.
    const unanswered = [user.call('GET', ACCOUNTS, { at: server })]
    await delay(300)
    const orderedAt = performance.now()
    const ordered = user.order({ at: server, body: 'an order' })
    await delay(900)
    unanswered.push(user.call('GET', ACCOUNTS, { at: server }))
    const { status } = await ordered
    for (const each of unanswered) t.equal((await each).status, 504)
    return { status, wasInTime: answeredAt - orderedAt < 1000 }
  }
  let last = await attempt()
  for (let tries = 1; tries < 5 && !last.wasInTime; tries++) last = await attempt()
  t.equal(last.status, 201)
})
