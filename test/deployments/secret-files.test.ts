import { test, type Test } from 'tap'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { SecretVolume } from '../support/config/secret-volume.ts'
import { createClient } from '../support/redis/client.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server/server-process.ts'
import { said, status, workerPids } from '../support/server/two-workers.ts'
import { testRedis } from '../support/server/test-server.ts'
import { logIn } from '../support/parts.ts'
import { startParts } from '../support/world.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { untilSlow as until } from '../support/time/until.ts'
import { ACCOUNTS } from '../support/user.ts'

const [OLD, NEW] = ['an-old-secret-of-thirty-two-bytes-at-least', 'a-new-secret-of-thirty-two-bytes-at-least']
const [OLD_TOKEN, NEW_TOKEN] = [
  'the-old-token-of-operators-of-32-characters',
  'the-new-token-of-operators-of-32-characters',
]

/** An instance of one process, one of two workers, their files of secrets, and a browser that is logged in. */
async function twoInstances(t: Test) {
  const redis = await testRedis(t, ['--requirepass', 'old-password'])
  const redisUrl = (password: string): string => redis.url.replace('//', `//:${password}@`)
  const admin = createClient({ url: redisUrl('old-password') })
  await admin.connect()
  t.teardown(() => admin.destroy())
  const volume = new SecretVolume(t.testdir({}), {
    SESSION_SECRETS: OLD,
    REDIS_URL: redisUrl('old-password'),
    OPS_TOKEN: OLD_TOKEN,
  })
  const { settings, port, publicUrl } = await startParts(t, { settings: volume.settings })
  const instances = [
    await serverProcess(t, { ...settings, PORT: String(port) }),
    await serverProcess(t, { ...settings, WORKERS: '2' }),
  ] as const
  for (const each of instances) t.ok(await ready(each))
  await until(() => said(instances[1], 'ready').length === 2, 'both workers are ready')
  const browser = new JarBrowser()
  await logIn(browser, publicUrl)
  return {
    publicUrl,
    volume,
    instances,
    browser,
    redisUrl,
    setUser: (word: string) => admin.sendCommand(['ACL', 'SETUSER', 'default', word]),
  }
}

const opsUrl = ({ opsPort }: ServerProcess): string => `http://127.0.0.1:${opsPort}`

/** The fingerprints of a setting that an instance has, in the order of its list, and how many processes have each. */
async function fingerprints(
  server: ServerProcess,
  setting: string,
): Promise<Map<string, [print: string, processes: number]>> {
  const samples = await samplesOf(opsUrl(server), 'bff_secret_processes')
  const found = new Map<string, [string, number]>()
  for (const [labels, value] of samples) {
    const [, name = '', place = '', print = ''] = /setting="(\w+)",place="(\d+)",fingerprint="(\w+)"/.exec(labels) ?? []
    if (name === setting) found.set(`${place} ${print}`, [print, value])
  }
  return found
}

/** The one fingerprint that all processes of an instance have at a place; undefined while they differ. */
async function common(
  server: ServerProcess,
  setting: string,
  place: number,
  processes: number,
): Promise<string | undefined> {
  const prints = [...(await fingerprints(server, setting))].filter(([key]) => key.startsWith(`${place} `))
  const [, [print, count]] = prints[0] ?? ['', ['', 0]]
  return prints.length === 1 && count === processes ? print : undefined
}

function cookieOf(browser: JarBrowser, publicUrl: string): string {
  return browser.cookieHeader(new URL(publicUrl), new URL(publicUrl))
}

const isLoggedIn = async (browser: JarBrowser, publicUrl: string, { port }: ServerProcess): Promise<boolean> =>
  (await status(port, ACCOUNTS, { cookie: cookieOf(browser, publicUrl), 'x-csrf': '1' })) === 200

async function operate(server: ServerProcess, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  return (await fetch(`${opsUrl(server)}/controls`, { headers })).status
}

await test('SESSION_SECRETS, REDIS_URL and OPS_TOKEN are rotated under load: no request fails, no socket closes, no login is lost', async (t) => {
  const { publicUrl, volume, instances, browser, redisUrl, setUser } = await twoInstances(t)
  const [single, supervised] = instances
  const cookie = cookieOf(browser, publicUrl)
  const accounts = await (await browser.fetch(ACCOUNTS, { headers: { 'x-csrf': '1' } })).text()
  const [account = ''] = /DOT\w+/.exec(accounts) ?? []
  const sockets = instances.flatMap(({ port }) =>
    ['/ws/public', `/ws/trading/${account}`, '/ws/session'].map(
      (path) => new BrowserSocket(`ws://127.0.0.1:${port}${path}`, { origin: publicUrl, cookie }),
    ),
  )
  await Promise.all(sockets.map((socket) => socket.opened()))
  const closes: unknown[] = []
  for (const { socket } of sockets)
    socket.on('close', (code, reason) => void closes.push([code, String(reason), socket.url]))
  const results = new Map<number, number>()
  const over = new AbortController()
  const callers = instances.flatMap(({ port }) =>
    [1, 2].map(async () => {
      while (!over.signal.aborted) {
        const result = await status(port, ACCOUNTS, { cookie, 'x-csrf': '1' }).catch(() => 0)
        results.set(result, (results.get(result) ?? 0) + 1)
      }
    }),
  )
  const untilAlike = async (setting: string, place: number, before?: string): Promise<string> => {
    let print: string | undefined
    await until(async () => {
      const [one, other] = [await common(single, setting, place, 1), await common(supervised, setting, place, 2)]
      print = one === other ? one : undefined
      return print !== undefined && print !== before
    }, `all processes have the same new fingerprint of ${setting} at ${place}`)
    return print ?? ''
  }

  const old = await untilAlike('SESSION_SECRETS', 1)
  const started = new JarBrowser()
  const form = await started.navigate(`${publicUrl}/auth/signup`)
  volume.change({ SESSION_SECRETS: `${OLD},${NEW}` })
  const fresh = await untilAlike('SESSION_SECRETS', 2)
  t.not(fresh, old)
  volume.change({ SESSION_SECRETS: `${NEW},${OLD}` })
  t.equal(
    await untilAlike('SESSION_SECRETS', 1, old),
    fresh,
    'the same secret has the same fingerprint at another place',
  )
  await started.submit(form, { email: 'started@example.test', password: 'any', action: 'continue' })
  t.ok(await isLoggedIn(started, publicUrl, single), 'a login that was in flight ends in a session')
  const later = new JarBrowser()
  await logIn(later, publicUrl, 'later@example.test')
  for (const each of instances) t.ok(await isLoggedIn(later, publicUrl, each))

  const credentials = await untilAlike('REDIS_URL', 1)
  volume.change({ REDIS_URL: redisUrl('new-password') })
  for (const each of instances) {
    const warned = async () =>
      /REDIS_URL has not changed.*WRONGPASS/.test(await (await fetch(`${opsUrl(each)}/readyz`)).text())
    await until(warned, 'a warning while Redis does not know the new password')
    t.match(await samplesOf(opsUrl(each), 'bff_secret_file_refused'), new Map([['setting="REDIS_URL"', 1]]))
  }
  await setUser('>new-password')
  t.not(await untilAlike('REDIS_URL', 1, credentials), credentials)
  await setUser('<old-password')

  volume.change({ OPS_TOKEN: NEW_TOKEN })
  for (const each of instances) {
    await until(async () => (await operate(each, NEW_TOKEN)) === 200, 'operators have the new token')
    t.equal(await operate(each, OLD_TOKEN), 401)
  }
  const tokens = await Promise.all(instances.map((each) => common(each, 'OPS_TOKEN', 1, 1)))
  t.ok(tokens[0] !== undefined && tokens[0] === tokens[1], 'the supervisor has the token, with the same fingerprint')

  volume.change({ SESSION_SECRETS: OLD })
  for (const each of instances) {
    const warned = async () =>
      /must keep the secret that signs/.test(await (await fetch(`${opsUrl(each)}/readyz`)).text())
    await until(warned, 'a warning about a list without the secret that signs')
  }
  over.abort()
  await Promise.all(callers)
  t.same([...results.keys()], [200], 'no call has failed')
  t.ok((results.get(200) ?? 0) > 100, `${results.get(200)} calls`)
  volume.change({ SESSION_SECRETS: NEW })
  await until(async () => (await fingerprints(single, 'SESSION_SECRETS')).size === 1, 'one secret is left')
  await until(
    async () => (await fingerprints(supervised, 'SESSION_SECRETS')).size === 1,
    'one secret is left in both workers',
  )
  t.same(closes, [])
  for (const each of instances) {
    t.notOk(await isLoggedIn(browser, publicUrl, each), 'a cookie signed by a secret that was removed')
    t.equal(await status(each.port, ACCOUNTS, { cookie: cookieOf(later, publicUrl), 'x-csrf': '1' }), 200)
  }

  const [victim = 0] = workerPids(supervised)
  process.kill(victim, 'SIGKILL')
  await until(() => said(supervised, 'ready').length === 3, 'a worker was replaced')
  await until(
    async () => (await common(supervised, 'SESSION_SECRETS', 1, 2)) === fresh,
    'the new worker has the same secret',
  )
  for (let times = 0; times < 4; times++) t.ok(await isLoggedIn(later, publicUrl, supervised))
  for (const { socket } of sockets) socket.terminate()
})
