import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { test, type Test } from 'tap'
import type { Admission, Budget } from '../../src/upstream/budget/admission.ts'
import { nextEvent } from '../support/time/until.ts'
import { ok, rawUpstream } from '../support/upstream/raw-upstream.ts'
import { restClient } from '../support/upstream/rest-client.ts'

/** A budget that admits when it is told to, and what becomes of its tokens. */
function heldBudget() {
  const events: string[] = []
  const waiting: ((admission: Admission) => void)[] = []
  const budget: Budget = {
    admit: () => new Promise((resolve) => void waiting.push(resolve)),
    spread: () => 0,
  }
  const reservation = {
    start: () => void events.push('spent'),
    answered: () => undefined,
    end: () => void events.push('over'),
  }
  const admitAll = (): void => {
    for (const admit of waiting.splice(0)) admit({ is: 'granted', reservation })
  }
  return { budget, events, admitAll }
}

async function client(t: Test, budget?: Budget) {
  const upstream = await rawUpstream(t)
  const patient = { UPSTREAM_CONNECT_SECONDS: '600', UPSTREAM_HEADERS_SECONDS: '600' }
  const rest = restClient(t, upstream, 1, patient, budget)
  const send = (path: string, session = () => true, signal?: AbortSignal) => {
    const body = Buffer.from('{}')
    return rest.exchange({ method: 'POST', path, template: path, headers: [], body, conditions: { session } }, signal)
  }
  /** @param response leads to the browser */
  const forward = (path: string, response: PassThrough) =>
    rest.forward(
      { method: 'GET', path, template: path, headers: [], body: null },
      {
        isSafe: true,
        response,
        begin: () => undefined,
        breakOff: () => response.destroy(),
        withholds: () => false,
        onHeadersOrFailure: () => undefined,
      },
    )
  return { upstream, send, forward }
}

const UNWANTED = { is: 'unreachable', cause: { name: 'NotStarted', outcome: { is: 'stale' } } }

await test('a request that is not wanted any more when the budget admits it is not sent, and its token is free', async (t) => {
  const { budget, events, admitAll } = heldBudget()
  const { upstream, send } = await client(t, budget)
  let isWanted = true
  const late = send('/late', () => isWanted)
  isWanted = false
  admitAll()
  t.match(await late, UNWANTED)
  t.same(events, ['over'], 'the token was not spent')
  const next = send('/next')
  admitAll()
  t.match(await next, { is: 'answered' })
  t.same(events, ['over', 'spent', 'over'])
  t.same(
    upstream.requests.map(({ target }) => target),
    ['/next'],
  )
})

await test('a request that is not wanted any more when a connection becomes free is not sent, and the next one is', async (t) => {
  const { upstream, send } = await client(t)
  const held: Socket[] = []
  upstream.answer = ({ target }, socket) => {
    if (target === '/first') held.push(socket)
    else socket.write(ok())
  }
  const arrived = upstream.next()
  const first = send('/first')
  await arrived
  let isWanted = true
  const late = send('/late', () => isWanted)
  const next = send('/next')
  isWanted = false
  held[0]?.write(ok())
  t.match(await first, { is: 'answered' })
  t.match(await late, UNWANTED)
  t.match(await next, { is: 'answered' })
  t.same(
    upstream.requests.map(({ target }) => target),
    ['/first', '/next'],
  )
})

await test('a call, and a request for a one-time URL, whose browser has left when the budget admits them leave their tokens free', async (t) => {
  const { budget, events, admitAll } = heldBudget()
  const { upstream, send, forward } = await client(t, budget)
  const [browser, left] = [new PassThrough(), new AbortController()]
  const call = forward('/call', browser)
  const otp = send('/otp', () => true, left.signal)
  browser.destroy()
  left.abort(new Error('the browser left'))
  admitAll()
  t.same(await call, { is: 'browserGone', sent: 'nothing', status: 0 })
  t.match(await otp, { is: 'unreachable', cause: left.signal.reason })
  t.same(events, ['over', 'over'])
  t.equal(upstream.requests.length, 0)
})

await test('a call, and a request for a one-time URL, whose browser leaves while they wait for a connection spend no token', async (t) => {
  const { budget, events, admitAll } = heldBudget()
  const { upstream, send, forward } = await client(t, budget)
  let held: Socket | undefined
  upstream.answer = (_request, socket) => void (held = socket)
  const arrived = upstream.next()
  const first = send('/first')
  admitAll()
  await arrived
  const [browser, left] = [new PassThrough(), new AbortController()]
  const call = forward('/call', browser)
  const otp = send('/otp', () => true, left.signal)
  admitAll()
  // Both wait for the connection now.
  await setImmediate()
  const closed = nextEvent(browser, 'close')
  browser.destroy()
  left.abort(new Error('the browser left'))
  await closed
  held?.write(ok())
  t.match(await first, { is: 'answered' })
  t.match(await call, { is: 'browserGone', sent: 'nothing' })
  t.match(await otp, { is: 'unreachable' })
  t.same(
    events.filter((event) => event === 'spent'),
    ['spent'],
    'by the first alone',
  )
  t.equal(upstream.requests.length, 1)
})
