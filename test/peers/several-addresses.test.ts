import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { LookupAddress } from 'node:dns'
import type { Socket } from 'node:net'
import { test, type Test } from 'tap'
import { lookupThreads } from '../support/peers/lookup-threads.ts'
import { MasterLink } from '../../src/store/links/master-link.ts'
import { stalledWay } from '../support/peers/stalled-way.ts'
import { testServer } from '../support/server/test-server.ts'
import { PUBLIC, sendTo } from '../support/user.ts'
import { startWorld, RELAY } from '../support/world.ts'

const HERE: LookupAddress = { address: '127.0.0.1', family: 4 }
/** A link-local address without its link: no machine has a route there. */
const NOWHERE: LookupAddress = { address: 'fe80::1', family: 6 }
/** Of this machine too, where nothing listens unless a test has it so. */
const THERE: LookupAddress = { address: '127.0.0.2', family: 4 }
const ELSEWHERE: LookupAddress = { address: '127.0.0.3', family: 4 }

const PEERS = ['api', 'sockets', 'provider', 'redis'] as const

let worlds = 0

/** A server to whose peers the ways can lose packets, and each kind of its connections. */
async function stallingWorld(
  t: Test,
  addresses: readonly LookupAddress[],
  { at, ...more }: { readonly at?: string } & Record<string, string> = {},
) {
  const names = lookupThreads(t, 8)
  const { upstream, provider, settings, browser, redis, joined } = await startWorld(t, { ...RELAY, redis: true })
  const ending = `-${++worlds}.addresses.test`
  const targets = {
    api: `http://${upstream.host}`,
    sockets: `ws://${upstream.host}`,
    provider: `${provider.url}/oauth2/token`,
    redis: redis?.url ?? '',
  }
  const found = await Promise.all(
    PEERS.map(async (peer) => {
      const url = new URL(targets[peer])
      const way = await stalledWay(t, Number(url.port), at)
      names.addresses.set(peer + ending, addresses)
      const address = `${url.protocol}//${peer}${ending}:${way.port}${url.pathname.replace(/\/$/, '')}`
      return { peer, way, target: Number(url.port), address }
    }),
  )
  const to = (peer: (typeof PEERS)[number]) => found.find((each) => each.peer === peer) ?? unknown(peer)
  const server = await testServer(t, {
    ...settings,
    ...more,
    API_URL: to('api').address,
    WS_URL: to('sockets').address,
    TOKEN_URL: to('provider').address,
  })
  const { port } = server
  const cookie = browser.cookieHeader(new URL(settings['PUBLIC_URL'] ?? ''), undefined)
  const connections = {
    api: async () => {
      // A GET would be sent again.
      const order = { headers: { cookie, 'x-csrf': '1' }, body: '{"amount":1}' }
      const { status } = await sendTo(port, 'POST', '/api/payment-agents/v1/transfer', order)
      if (status !== 200) throw new Error(`a call got ${status}`)
    },
    sockets: async () => {
      await joined(PUBLIC, { at: { port } })
    },
    provider: async () => {
      const { headers } = await sendTo(port, 'GET', '/auth/login')
      const state = new URL(headers.location ?? '').searchParams.get('state')
      const own = { cookie: headers['set-cookie']?.[0]?.split(';')[0] ?? '' }
      const answer = await sendTo(port, 'GET', `/auth/callback?code=x&state=${state}`, { headers: own })
      const error = new URL(answer.headers.location ?? '').searchParams.get('auth_error')
      // The provider does not know the code.
      if (error !== 'invalid_grant') throw new Error(`a login ended with ${error}`)
    },
    redis: async () => {
      const options = { url: to('redis').address }
      const link = new MasterLink(async () => ({ name: 'master', options, owns: () => true }))
      t.teardown(() => link.close())
      const rest = { opened: nothing, ask: nothing, unreached: () => undefined, changed: () => undefined }
      await new Promise<void>((up, reject) => {
        void link.open({ ...rest, up, lost: (reason) => reject(new Error(reason)) })
      })
    },
  }
  return { to, connections }
}

async function nothing(): Promise<void> {
  // The connection alone counts.
}

function unknown(peer: string): never {
  throw new Error(`no peer is called ${peer}`)
}

for (const [title, addresses] of [
  ['IPv4, where the first packet is lost, and IPv6, where there is no route', [HERE, NOWHERE]],
  ['two addresses, the first of which loses the first packet and the second of which refuses', [HERE, THERE]],
] as const) {
  await test(`A connection succeeds with ${title}`, async (t) => {
    const { to, connections } = await stallingWorld(t, addresses)
    await Promise.all(
      PEERS.map(async (peer) => {
        await to(peer).way.loseOne()
        await t.resolves(connections[peer](), peer)
      }),
    )
  })
}

for (const [second, first] of [
  ['refuses', HERE],
  ['is silent', ELSEWHERE],
] as const) {
  await test(`A connection succeeds with a first address that takes longer than an attempt, and a second one that ${second}`, async (t) => {
    const { to, connections } = await stallingWorld(t, [first, THERE], {
      UPSTREAM_CONNECT_SECONDS: '10',
      at: first.address,
    })
    await Promise.all(
      (['api', 'sockets'] as const).map(async (peer) => {
        const { way, target } = to(peer)
        if (second === 'is silent') await (await stalledWay(t, target, THERE.address, way.port)).stall()
        await way.loseOne(1500)
        await t.resolves(connections[peer](), peer)
      }),
    )
  })
}

await test('A first address that drops every packet leaves the second one time, and comes last from then on', async (t) => {
  const { to, connections } = await stallingWorld(t, [THERE, HERE])
  const tried: string[] = []
  const noteSocket = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket }
    socket.on('connectionAttempt', (address) => void tried.push(address))
  }
  subscribe('net.client.socket', noteSocket)
  t.teardown(() => unsubscribe('net.client.socket', noteSocket))
  await Promise.all(
    PEERS.map(async (peer) => {
      const { target, way } = to(peer)
      const dead = await stalledWay(t, target, THERE.address, way.port)
      await dead.stall()
      await t.resolves(connections[peer](), peer)
    }),
  )
  t.ok(tried.includes(THERE.address))
  tried.length = 0
  await Promise.all(PEERS.map((peer) => t.resolves(connections[peer](), peer)))
  t.notOk(tried.includes(THERE.address))
})
