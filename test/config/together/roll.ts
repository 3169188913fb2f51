import { randomUUID } from 'node:crypto'
import { control } from '../../support/controls/controls-world.ts'
import { until } from '../../support/time/until.ts'
import { ACCOUNTS, TRADING } from '../../support/user.ts'
import { told, type Expect } from './part.ts'
import type { Person, RowWorld } from './row-world.ts'

type Server = RowWorld['servers'][number]

const LINK =
  '/auth/signup?sidc=6a1c4d2e-0000-4000-8000-000000000000&utm_source=CU1&utm_medium=affiliate&utm_campaign=autumn'

/** A user whom a balancer leads from one instance to another, which an operator has started with another setting. */
export async function roll(world: RowWorld, [from, to]: readonly [Server, Server], expect: Expect): Promise<void> {
  const person = world.person('eve')
  const login = await person.start(`${from.url}${LINK}`)
  const arrival = await login.finish(to)
  expect(!arrival.url.searchParams.has('auth_error'), `a login ends at ${arrival.url.href}`)
  for (const at of [to, from]) {
    const session = await person.call('GET', '/auth/session', { at })
    expect(session.json['authenticated'] === true, `the session: ${told(session)}`)
    const read = await person.call('GET', ACCOUNTS, { at })
    expect(read.status === 200, `a call: ${told(read)}`)
  }
  await order(world, person, [from, to], expect)
  await renew(world, person, [from, to], expect)
  await pause(person, [from, to], expect)
  const sockets = [from, to].flatMap((at) => [person.socket(TRADING, { at }), person.socket('/ws/session', { at })])
  const open: typeof sockets = []
  for (const { socket } of sockets) socket.once('open', () => socket.send('hello'))
  for (const socket of sockets) {
    await socket.count(1)
    if (socket.received.length > 0) open.push(socket)
    else expect((await socket.closed).code === 4429, `a socket closes with ${(await socket.closed).code}`)
  }
  expect(open.length >= 2, `${open.length} sockets open`)
  const { cookie } = person
  const left = await person.call('POST', '/auth/logout', { at: from, headers: { cookie } })
  expect(left.status === 204, `a logout: ${told(left)}`)
  for (const socket of open)
    expect((await socket.closed).code === 4401, `a socket closes with ${(await socket.closed).code}`)
  for (const at of [from, to]) {
    const gone = await person.call('GET', ACCOUNTS, { at, headers: { cookie } })
    expect(gone.status === 401, `a call after the logout: ${told(gone)}`)
  }
  for (const { log } of [from, to])
    for (const line of log.filter(({ level }) => Number(level) >= 50))
      expect(false, `the log says ${JSON.stringify(line).slice(0, 200)}`)
}

async function order(
  { executed }: RowWorld,
  person: Person,
  servers: readonly Server[],
  expect: Expect,
): Promise<void> {
  const key = randomUUID()
  const answers = []
  for (const at of [...servers, ...servers]) answers.push(await person.order({ key, at, body: '' }))
  const [first, ...others] = answers
  expect(first?.status === 200, `an order: ${first && told(first)}`)
  for (const answer of others) expect(/^200|answer_not_kept/.test(told(answer)), `its repetition: ${told(answer)}`)
  expect(executed.filter((each) => each === key).length === 1, 'it was not executed once')
}

async function renew(
  { refused, granted }: RowWorld,
  person: Person,
  servers: readonly Server[],
  expect: Expect,
): Promise<void> {
  const grant = granted.at(-1)
  refused.add(grant?.access.at(-1) ?? '')
  for (const at of servers) {
    const read = await person.call('GET', ACCOUNTS, { at })
    expect(read.status === 200, `a call whose token was refused: ${told(read)}`)
  }
  expect(grant?.access.length === 2, `${grant?.access.length} tokens, one of which was refused`)
}

async function pause(person: Person, servers: readonly Server[], expect: Expect): Promise<void> {
  // The second key, and perhaps the last one that a session may use.
  const key = randomUUID()
  const becomes = async (isPaused: boolean, at: Server): Promise<void> => {
    const isSo = async () => {
      const { json } = await person.call('GET', '/auth/session', { at })
      return (json['orders_paused'] !== undefined) === isPaused
    }
    await until(isSo, `orders_paused of pages is ${isPaused}`).catch(({ message }: Error) => expect(false, message))
  }
  let pauses = 0
  for (const by of servers) {
    const paused = await control(by, 'PUT', '/orders', { paused: true }).catch(() => undefined)
    // It may have no operators.
    if (paused === undefined || paused.status === 404) continue
    pauses++
    expect(paused.status === 200, `a pause gets ${paused.status}`)
    for (const at of servers) {
      await becomes(true, at)
      const refused = await person.order({ at, key, body: '' })
      expect(refused.json['code'] === 'orders_paused', `an order during a pause: ${told(refused)}`)
    }
    await control(by, 'DELETE', '/orders')
    for (const at of servers) await becomes(false, at)
  }
  expect(pauses > 0, 'no instance has operators')
  const made = await person.order({ at: servers[1], key, body: '' })
  expect(made.status === 200, `an order after a pause: ${told(made)}`)
}
