import { test } from 'tap'
import { startSilentNameServer } from '../support/deployment/name-server.ts'
import { enterNamespaces } from '../support/deployment/namespaces.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { CLIENT_ID, SECRETS } from '../support/server/test-server.ts'
import { said } from '../support/server/two-workers.ts'
import { until } from '../support/time/until.ts'
import { PUBLIC, sendTo, ACCOUNTS } from '../support/user.ts'
import { startWorld, RELAY } from '../support/world.ts'

const skip = enterNamespaces()
const CONNECTED = 'the session store is connected'
/** For so long the others are used while one name server is silent: longer than the system waits for it. */
const USED_MS = 11_000

const at = (url: string, name: string): string => url.replace(/127\.0\.0\.1|localhost/, name)

for (const [workers, environment] of [
  ['one process', { UV_THREADPOOL_SIZE: '16' }],
  ['two workers of a supervisor that was started without a number of threads', { WORKERS: '2' }],
] as const) {
  await test(
    `Real name servers that are silent about one peer keep nobody else waiting: ${workers}`,
    { skip },
    async (t) => {
      const silent = new Set<string>()
      await startSilentNameServer(t, silent)
      const world = await startWorld(t, { ...RELAY, redis: true })
      const { upstream, provider, settings, browser } = world
      upstream.onRest = (_request, response) => {
        response.writeHead(200, { connection: 'close', 'content-type': 'application/json' }).end('{"data":[]}')
      }
      const server = await serverProcess(t, {
        ...settings,
        ...environment,
        CLIENT_ID,
        PUBLIC_HANDSHAKES_PER_MINUTE: '100000',
        SESSION_SECRETS: SECRETS,
        API_URL: at(`http://${upstream.host}`, 'api.test'),
        WS_URL: at(`ws://${upstream.host}`, 'sockets.test'),
        TOKEN_URL: at(`${provider.url}/oauth2/token`, 'provider.test'),
        REDIS_URL: at(world.redis?.url ?? '', 'redis.test'),
      })
      t.ok(await ready(server))
      const { port } = server
      const cookie = browser.cookieHeader(new URL(settings['PUBLIC_URL'] ?? ''), undefined)
      const login = async (): Promise<string> => {
        const { headers } = await sendTo(port, 'GET', '/auth/login')
        const state = new URL(headers.location ?? '').searchParams.get('state')
        const own = { cookie: headers['set-cookie']?.[0]?.split(';')[0] ?? '' }
        const answer = await sendTo(port, 'GET', `/auth/callback?code=x&state=${state}`, { headers: own })
        return new URL(answer.headers.location ?? '').searchParams.get('auth_error') ?? ''
      }
      /** Uses the other peers again and again. @returns the longest that each took (ms) */
      const useOthers = async (uses: Readonly<Record<string, () => Promise<unknown>>>): Promise<void> => {
        const until = performance.now() + USED_MS
        const one = async ([name, use]: readonly [string, () => Promise<unknown>]): Promise<string> => {
          let longest = 0
          while (performance.now() < until) {
            const begunAt = performance.now()
            await use()
            longest = Math.max(longest, performance.now() - begunAt)
          }
          return `${name} took ${Math.round(longest)} ms at most`
        }
        for (const line of await Promise.all(Object.entries(uses).map(one))) t.comment(line)
      }
      const call = async () => {
        const { status } = await sendTo(port, 'GET', ACCOUNTS, { headers: { cookie, 'x-csrf': '1' } })
        if (status !== 200) throw new Error(`a call got ${status}`)
      }
      const socket = async (): Promise<void> => {
        const { client } = await world.joined(PUBLIC, { at: { port } })
        client.socket.terminate()
      }
      const client = await world.storeClient()
      const reconnect = async (): Promise<void> => {
        const before = said(server, CONNECTED).length
        await client.sendCommand(['CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'])
        await until(() => said(server, CONNECTED).length > before)
        await until(async () => (await sendTo(port, 'GET', '/auth/session', { headers: { cookie } })).status === 200)
      }

      silent.add('provider.test')
      const logins = Array.from({ length: 20 }, login)
      await t.resolves(useOthers({ call, socket }), 'while the name of the provider does not resolve')
      await t.resolves(reconnect(), 'Redis is connected again')
      for (const error of await Promise.all(logins)) t.equal(error, 'provider_unavailable')
      silent.clear()
      await until(async () => (await login()) === 'invalid_grant', 'the provider is asked again', 60_000)

      silent.add('api.test').add('sockets.test').add('redis.test')
      await t.resolves(useOthers({ call, socket }), 'with the last good addresses, after a second at most')
      await t.resolves(reconnect(), 'Redis is connected again')
      t.equal(await login(), 'invalid_grant')
      t.not(said(server, 'a name is not resolved in time').length, 0)
      server.child.kill('SIGTERM')
      await server.exited
    },
  )
}
