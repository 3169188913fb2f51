import { test } from 'tap'
import { issuerKey, oidcWorld, sign } from '../support/login/oidc-world.ts'
import { testServer } from '../support/server/test-server.ts'

/** What a probe of the store runs: a script and what is in it, with what it writes once a minute. */
const PROBE_COMMANDS = 6

await test('POST /auth/backchannel-logout: ten thousand false tokens cost no command of Redis and no request for keys', async (t) => {
  const world = await oidcWorld(t, { redis: true, settings: { TRUST_PROXY: '1' } })
  const redis = await world.storeClient()
  t.equal((await world.postLogout(await world.logoutToken({ sub: 'ada' }))).status, 200)
  const stranger = issuerKey('first')
  const forged = [
    await sign(stranger, world.logoutClaims({ sub: 'ada' })),
    await world.logoutToken({ sub: 'ada', nonce: 'n' }),
    await world.logoutToken({ sub: 'ada', iss: 'https://other.example' }),
    'a.b.c',
  ]
  const count = Number(process.env['FALSE_TOKENS'] ?? 2000)
  /** Commands besides those that keep connections alive, and a few for each second's probe of the store. */
  const commands = async (): Promise<number> => {
    const calls = [...(await redis.info('commandstats')).matchAll(/^cmdstat_(\w+).*?:calls=(\d+)/gm)]
    const counted = calls.filter(([, name = '']) => !['ping', 'info', 'client', 'hello'].includes(name))
    return counted.reduce((sum, [, , count]) => sum + Number(count), 0)
  }
  const before = await commands()
  const startedAt = performance.now()
  const requests = world.keys.requests.length
  const cpu = process.cpuUsage()
  const tokens = Array.from({ length: count }, (_each, at) => [at, forged[at % forged.length] ?? ''] as const).values()
  const work = async (): Promise<void> => {
    for (const [at, token] of tokens) {
      const response = await fetch(`${world.server.url}/auth/backchannel-logout`, {
        method: 'POST',
        headers: { 'x-forwarded-for': `2001:db8:${(at >> 3).toString(16)}::1` },
        body: new URLSearchParams({ logout_token: token }),
      })
      await response.text()
      if (response.status !== 400) t.equal(response.status, 400)
    }
  }
  await Promise.all(Array.from({ length: 16 }, work))
  const used = process.cpuUsage(cpu)
  t.comment(
    `${count} false tokens: ${Math.round((used.user + used.system) / count)} µs of CPU each, the client's part included`,
  )
  t.equal(world.keys.requests.length, requests)
  // The known addresses are read once a minute: a script of two commands.
  const seconds = (performance.now() - startedAt) / 1000
  const probes = Math.ceil(seconds) + 1
  t.ok((await commands()) - before <= 3 + probes * PROBE_COMMANDS)
  const lines = world.server.log.filter(({ audit }) => audit === 'provider_logout_refused')
  // A hundred sources of ten seconds have five lines each, and one for the rest.
  t.ok(lines.length < 500 * Math.ceil(seconds / 10), `nor do the lines of the log: ${lines.length}`)
})

await test('The time from the post of the provider to the last closed socket at another instance, for docs/performance.md', async (t) => {
  const [rounds, sockets] = [Number(process.env['ROUNDS'] ?? 3), 10]
  const world = await oidcWorld(t, { redis: true, settings: { PUBLIC_HANDSHAKES_PER_MINUTE: '0' } })
  const other = await testServer(t, world.settings)
  const took: number[] = []
  for (let round = 0; round < rounds; round++) {
    const user = await world.user('ada', { sid: `s${round}` })
    const watches = Array.from({ length: sockets }, () => user.socket('/ws/session', { at: other }))
    for (const watch of watches) await watch.count(1)
    const token = await world.logoutToken({ sid: `s${round}` })
    const startedAt = performance.now()
    const [response] = await Promise.all([world.postLogout(token), ...watches.map(({ closed }) => closed)])
    took.push(performance.now() - startedAt)
    t.equal(response.status, 200)
  }
  const sorted = took.toSorted((one, another) => one - another)
  const at = (part: number): string => (sorted[Math.ceil(part * rounds) - 1] ?? NaN).toFixed(1)
  t.comment(`${rounds} logouts, ${sockets} sockets each: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`)
})
