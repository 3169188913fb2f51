import { setInterval } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { sharedResponseKey } from '../../src/store/keys.ts'
import { enterNamespaces } from '../support/deployment/namespaces.ts'
import { fivePeers, PEERS, type Peer } from '../support/peers/five-peers.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { PUBLIC, sendTo, type Answer, ACCOUNTS } from '../support/user.ts'
import { nextEvent, within } from '../support/time/until.ts'

const skip = enterNamespaces()

/** What a user does, and the peers that it needs. */
interface Use {
  readonly name: string
  readonly needs: readonly Peer[]
  /** What is said without this peer, which may be waited for, is all that counts. */
  readonly without?: Peer
  /** Rejects unless it ends well. */
  readonly run: () => Promise<unknown>
}
const USED_MS = 2000
/** Everything is begun so often, whether what was begun before has ended or not. */
const EVERY_MS = 40
/** Nobody waits for another's peer for longer than a second; the rest is for the use itself. */
const LONGEST_MS = 1500

/** Begins all uses again and again. @returns how long those took that count (ms), and what went wrong with them */
async function useAll(uses: readonly Use[], counts: (use: Use) => boolean) {
  const took = new Map(uses.filter(counts).map(({ name }) => [name, [] as number[]]))
  const errors: string[] = []
  const measured: Promise<void>[] = []
  const measure = async ({ name, run, without }: Use): Promise<void> => {
    const begunAt = performance.now()
    await within(run(), name, without === undefined ? LONGEST_MS : 2 * LONGEST_MS).catch((error: Error) =>
      errors.push(`${name}: ${error.message}`),
    )
    took.get(name)?.push(performance.now() - begunAt)
  }
  const endsAt = performance.now() + USED_MS
  for await (const _ of setInterval(EVERY_MS)) {
    if (performance.now() > endsAt) break
    for (const use of uses) {
      if (counts(use)) measured.push(measure(use))
      else use.run().catch(() => undefined)
    }
  }
  await Promise.all(measured)
  return { took, errors }
}

function share(times: readonly number[], part: number): number {
  const sorted = times.toSorted((a, b) => a - b)
  return Math.round(sorted[Math.ceil(part * sorted.length) - 1] ?? Number.NaN)
}

async function expect(answer: Promise<Answer>, wanted: number): Promise<void> {
  const { status, text } = await answer
  if (status !== wanted) throw new Error(`${status} ${/"code":"\w+"/.exec(text)?.[0]}`)
}

await test('While any two peers are down, whoever uses the others goes on', { skip }, async (t) => {
  const peers = await fivePeers(t)
  const { world, settings } = peers
  const redis = await world.storeClient()
  const cookie = world.browser.cookieHeader(new URL(settings['PUBLIC_URL'] ?? ''), undefined)

  const startServer = async (t: Test): Promise<readonly Use[]> => {
    // A server that is killed may leave the claim to ask for all.
    await redis.del(sharedResponseKey('/v1/health'))
    const server = await serverProcess(t, settings)
    t.ok(await ready(server))
    return usesOf(server.port)
  }

  const usesOf = (port: number): readonly Use[] => {
    const get = (path: string, own = cookie) => sendTo(port, 'GET', path, { headers: { cookie: own, 'x-csrf': '1' } })
    /** With a made-up code. */
    const logInWith = async (wanted: string): Promise<void> => {
      let { headers } = await get('/auth/login', '')
      const state = new URL(headers.location ?? '').searchParams.get('state')
      const own = headers['set-cookie']?.[0]?.split(';')[0]
      if (state !== null) ({ headers } = await get(`/auth/callback?code=x&state=${state}`, own))
      const error = new URL(headers.location ?? '').searchParams.get('auth_error')
      if (error !== wanted) throw new Error(`a login ended with ${error}`)
    }
    const openSocket = async (): Promise<void> => {
      const { socket } = world.socket(PUBLIC, { at: { port } })
      await nextEvent(socket, 'message')
      socket.terminate()
    }
    return [
      { name: 'provider: login', needs: ['provider', 'redis'], run: () => logInWith('invalid_grant') },
      { name: 'no redis: try_later', needs: [], without: 'redis', run: () => logInWith('try_later') },
      { name: 'rest: call of a session', needs: ['rest', 'redis'], run: () => expect(get(ACCOUNTS), 200) },
      { name: 'rest: health', needs: ['rest'], run: () => expect(get('/api/v1/health'), 200) },
      { name: 'redis: start of a login', needs: ['redis'], run: () => expect(get('/auth/login'), 303) },
      { name: 'sockets: public socket', needs: ['sockets'], run: openSocket },
    ]
  }

  const usual = new Map<string, number>()
  const useOthers = async (t: Test, uses: readonly Use[], down: readonly Peer[], how: string): Promise<void> => {
    const isDown = (peer: Peer): boolean => down.includes(peer)
    const counts = ({ needs, without }: Use): boolean =>
      !needs.some(isDown) && (without === undefined || isDown(without))
    const { took, errors } = await useAll(uses, counts)
    t.strictSame([...new Set(errors)], [], how)
    for (const [name, times] of took) {
      const p99 = share(times, 0.99)
      if (down.length === 0) usual.set(name, p99)
      const cells = [down.join(' + '), how, name, times.length, errors.filter((each) => each.startsWith(name)).length]
      t.comment([...cells, share(times, 0.5), p99, usual.get(name)].join(' | '))
    }
  }
  t.comment('down | how | used | times | errors | p50 (ms) | p99 (ms) | p99 with nothing down (ms)')
  await t.test('nothing is down', async (t) => {
    const uses = await startServer(t)
    // The first connections and the first names cost more.
    await useAll(uses, ({ without }) => without === undefined)
    await useOthers(t, uses, [], 'nothing')
  })
  for (const down of PEERS.flatMap((one, index) => PEERS.slice(index + 1).map((other) => [one, other] as const))) {
    await t.test(`${down.join(' and ')} have names that were never resolved`, async (t) => {
      for (const peer of down) if (peer !== 'redis') peers.silence(peer)
      const uses = await startServer(t)
      for (const peer of down) peers.silence(peer)
      if (down.includes('redis')) peers.lose('redis')
      await useOthers(t, uses, down, 'the name was never resolved')
      peers.restore()
    })
    await t.test(`${down.join(' and ')} are silent, have no route, are lost`, async (t) => {
      const uses = await startServer(t)
      await Promise.all(uses.filter(({ without }) => without === undefined).map(({ run }) => run()))
      for (const peer of down) peers.stall(peer)
      await useOthers(t, uses, down, 'accepted, never answered')
      for (const peer of down) peers.cutOff(peer)
      await useOthers(t, uses, down, 'no route')
      for (const peer of down) {
        peers.silence(peer)
        peers.lose(peer)
      }
      await useOthers(t, uses, down, 'packets and name lost')
      peers.restore()
    })
  }
})
