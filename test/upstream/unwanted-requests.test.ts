import type { Socket } from 'node:net'
import { test, type Test } from 'tap'
import type { Admission, Budget } from '../../src/upstream/budget/admission.ts'
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
  const send = (path: string, session = () => true) => {
    const body = Buffer.from('{}')
    return rest.exchange({ method: 'POST', path, template: path, headers: [], body, conditions: { session } })
  }
  return { upstream, send }
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
