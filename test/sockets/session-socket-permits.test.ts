import { test } from 'tap'
import { answerJson } from '../support/upstream/scripted-upstream.ts'
import { until } from '../support/time/until.ts'
import { startWorld, type World } from '../support/world.ts'
import { type User } from '../support/user.ts'

const SESSION = '/ws/session'
const FULL = { code: 4429, reason: 'too_many_relays' }

/** A user who is logged in. @param subject what upstream says the user is; without it upstream fails */
function loggedIn({ upstream, user }: World<'scripted'>, subject?: string): Promise<User> {
  upstream.onRest = (_request, response) =>
    subject === undefined ? answerJson(response, 500, {}) : answerJson(response, 200, { id: subject })
  return user()
}

/** How a browser at this address opens a socket. */
const at = (address: string) => ({ headers: { 'x-forwarded-for': address } })

await test('MAX_SESSION_SOCKETS counts all sessions of a subject together, from whatever address', async (t) => {
  const settings = {
    MAX_SESSION_SOCKETS: '2',
    MAX_SESSION_SOCKETS_PER_IP: '1',
    IDENTITY_PATH: '/me',
    IDENTITY_POINTER: '/id',
    TRUST_PROXY: '1',
  }
  const world = await startWorld(t, { upstream: 'scripted', settings })
  const one = await loggedIn(world, 'CR1')
  const two = await loggedIn(world, 'CR1')
  const first = await one.socket(SESSION, at('192.0.2.1')).opened()
  await two.socket(SESSION, at('192.0.2.1')).opened()
  t.same(await one.socket(SESSION, at('192.0.2.1')).closed, FULL)
  t.same(await two.socket(SESSION, at('192.0.2.2')).closed, FULL)
  await (await loggedIn(world, 'CR2')).socket(SESSION, at('192.0.2.1')).opened()
  first.socket.close()
  await until(async () => (await world.metric('bff_relays')).get('kind="session"') === 2)
  await two.socket(SESSION, at('192.0.2.1')).opened()

  const unknown = await loggedIn(world)
  await unknown.socket(SESSION, at('192.0.2.1')).opened()
  t.same(await unknown.socket(SESSION, at('192.0.2.1')).closed, FULL, 'a session without a subject')
  await (await loggedIn(world, 'CR3')).socket(SESSION, at('192.0.2.1')).opened()
})

await test('MAX_SESSION_SOCKETS_PER_IP counts the sessions without a subject by address, IPv6 by /64', async (t) => {
  const settings = { MAX_SESSION_SOCKETS: '2', MAX_SESSION_SOCKETS_PER_IP: '3', TRUST_PROXY: '1' }
  const world = await startWorld(t, { upstream: 'scripted', settings })
  const [one, two, three] = [await loggedIn(world), await loggedIn(world), await loggedIn(world)]
  const first = await one.socket(SESSION, at('2001:db8::1')).opened()
  await one.socket(SESSION, at('2001:db8::2')).opened()
  t.same(await one.socket(SESSION, at('2001:db8:1::1')).closed, FULL, 'a session has its limit everywhere')
  await two.socket(SESSION, at('2001:db8::ffff:1')).opened()
  t.same(await two.socket(SESSION, at('2001:db8::3')).closed, FULL)
  t.same(await three.socket(SESSION, at('2001:db8::4')).closed, FULL)
  await two.socket(SESSION, at('2001:db8:0:1::1')).opened()
  first.socket.close()
  await until(async () => (await world.metric('bff_relays')).get('kind="session"') === 3)
  await three.socket(SESSION, at('2001:db8::4')).opened()
})

async function isFree(user: User): Promise<boolean> {
  const client = user.socket(SESSION, at('192.0.2.1'))
  await Promise.race([client.count(1), client.closed])
  client.socket.terminate()
  return client.received.length > 0
}

await test('session sockets that are refused, die or are closed give both permits back, once', async (t) => {
  const settings = {
    MAX_SESSION_SOCKETS: '1',
    MAX_SESSION_SOCKETS_PER_IP: '1',
    PUBLIC_HANDSHAKES_PER_MINUTE: '0',
    TRUST_PROXY: '1',
  }
  const world = await startWorld(t, { upstream: 'scripted', settings })
  const [one, two] = [await loggedIn(world), await loggedIn(world)]
  for (let round = 0; round < 5; round++) {
    const open = one.socket(SESSION, at('192.0.2.1'))
    await open.count(1)
    t.same(await two.socket(SESSION, at('192.0.2.1')).closed, FULL, 'refused by address')
    t.same(await one.socket(SESSION, at('192.0.2.2')).closed, FULL, 'refused by session')
    if (round % 2 === 0) open.socket.close()
    else open.socket.terminate()
    await until(() => isFree(two), 'the address and the other session have a permit')
    const left = one.socket(SESSION, at('192.0.2.1'))
    left.socket.on('upgrade', () => left.socket.terminate())
    await left.closed
    await until(() => isFree(one), 'a browser that left in its handshake')
  }
  await world.quiet()
})
