import { test } from 'tap'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'
import { until } from '../support/time/until.ts'
import { logIn } from '../support/parts.ts'
import { startWorld, type World } from '../support/world.ts'

const SESSION = '/ws/session'
const FULL = { code: 4429, reason: 'too_many_relays' }

/** A browser that is logged in. @param subject what upstream says the user is; without it upstream fails */
async function loggedIn({ server, upstream }: World<'scripted'>, subject?: string): Promise<JarBrowser> {
  upstream.onRest = (_request, response) =>
    subject === undefined ? answerJson(response, 500, {}) : answerJson(response, 200, { id: subject })
  const browser = new JarBrowser()
  await logIn(browser, server.url)
  return browser
}

/** How a browser at this address opens a socket. */
const at = (address: string, browser: JarBrowser) => ({ browser, headers: { 'x-forwarded-for': address } })

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
  const first = await world.socket(SESSION, at('192.0.2.1', one)).opened()
  await world.socket(SESSION, at('192.0.2.1', two)).opened()
  t.same(await world.socket(SESSION, at('192.0.2.1', one)).closed, FULL)
  t.same(await world.socket(SESSION, at('192.0.2.2', two)).closed, FULL)
  await world.socket(SESSION, at('192.0.2.1', await loggedIn(world, 'CR2'))).opened()
  first.socket.close()
  await until(async () => (await world.metric('bff_relays')).get('kind="session"') === 2)
  await world.socket(SESSION, at('192.0.2.1', two)).opened()

  const unknown = await loggedIn(world)
  await world.socket(SESSION, at('192.0.2.1', unknown)).opened()
  t.same(await world.socket(SESSION, at('192.0.2.1', unknown)).closed, FULL, 'a session without a subject')
  await world.socket(SESSION, at('192.0.2.1', await loggedIn(world, 'CR3'))).opened()
})

await test('MAX_SESSION_SOCKETS_PER_IP counts the sessions without a subject by address, IPv6 by /64', async (t) => {
  const settings = { MAX_SESSION_SOCKETS: '2', MAX_SESSION_SOCKETS_PER_IP: '3', TRUST_PROXY: '1' }
  const world = await startWorld(t, { upstream: 'scripted', settings })
  const [one, two, three] = [await loggedIn(world), await loggedIn(world), await loggedIn(world)]
  const first = await world.socket(SESSION, at('2001:db8::1', one)).opened()
  await world.socket(SESSION, at('2001:db8::2', one)).opened()
  t.same(await world.socket(SESSION, at('2001:db8:1::1', one)).closed, FULL, 'a session has its limit everywhere')
  await world.socket(SESSION, at('2001:db8::ffff:1', two)).opened()
  t.same(await world.socket(SESSION, at('2001:db8::3', two)).closed, FULL)
  t.same(await world.socket(SESSION, at('2001:db8::4', three)).closed, FULL)
  await world.socket(SESSION, at('2001:db8:0:1::1', two)).opened()
  first.socket.close()
  await until(async () => (await world.metric('bff_relays')).get('kind="session"') === 3)
  await world.socket(SESSION, at('2001:db8::4', three)).opened()
})

await test('session sockets that are refused, die or are closed give both permits back, once', async (t) => {
  const settings = {
    MAX_SESSION_SOCKETS: '1',
    MAX_SESSION_SOCKETS_PER_IP: '1',
    PUBLIC_HANDSHAKES_PER_MINUTE: '0',
    TRUST_PROXY: '1',
  }
  const world = await startWorld(t, { upstream: 'scripted', settings })
  const [one, two] = [await loggedIn(world), await loggedIn(world)]
  const isFree = async (browser: JarBrowser): Promise<boolean> => {
    const client = world.socket(SESSION, at('192.0.2.1', browser))
    await Promise.race([client.count(1), client.closed])
    client.socket.terminate()
    return client.received.length > 0
  }
  for (let round = 0; round < 5; round++) {
    const open = world.socket(SESSION, at('192.0.2.1', one))
    await open.count(1)
    t.same(await world.socket(SESSION, at('192.0.2.1', two)).closed, FULL, 'refused by address')
    t.same(await world.socket(SESSION, at('192.0.2.2', one)).closed, FULL, 'refused by session')
    if (round % 2 === 0) open.socket.close()
    else open.socket.terminate()
    await until(() => isFree(two), 'the address and the other session have a permit')
    const left = world.socket(SESSION, at('192.0.2.1', one))
    left.socket.on('upgrade', () => left.socket.terminate())
    await left.closed
    await until(() => isFree(one), 'a browser that left in its handshake')
  }
  await world.quiet()
})
