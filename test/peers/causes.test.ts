import { once } from 'node:events'
import type { Socket } from 'node:net'
import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { check } from '../../src/ops/check.ts'
import { connector } from '../../src/peers/dialing.ts'
import { lookupThreads } from '../support/peers/lookup-threads.ts'
import { silentServer } from '../support/peers/silent-server.ts'
import { stalledWay } from '../support/peers/stalled-way.ts'
import { ALONE } from '../support/server/settings.ts'
import { replace } from '../support/time/replace.ts'
import { until, within } from '../support/time/until.ts'

await test('A connection that fails at each of several addresses says where, why and after which time', async (t) => {
  const names = lookupThreads(t, 8)
  names.addresses.set('several.causes.test', [
    { address: '127.0.0.2', family: 4 },
    { address: '127.0.0.1', family: 4 },
  ])
  const { port, stall } = await stalledWay(t, 9, '127.0.0.2')
  await stall()
  const { promise, resolve } = Promise.withResolvers<Error | null>()
  const open = connector('api', { timeoutMs: 3000 })
  open({ hostname: 'several.causes.test', protocol: 'http:', port: String(port) }, (...[failure]) => resolve(failure))
  const error = await within(promise, 'a result')
  t.match(error, { code: 'UND_ERR_CONNECT_TIMEOUT' })
  t.match(
    error?.message,
    new RegExp(
      `^no connection after \\d{4} ms: connect ETIMEDOUT 127.0.0.2:${port}, connect ECONNREFUSED 127.0.0.1:${port}$`,
    ),
  )
})

await test('A connection whose TLS is never answered fails within the time for all of it, and is closed', async (t) => {
  const { server, port } = await silentServer(t)
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const { promise, resolve } = Promise.withResolvers<Error | null>()
  const open = connector('api', { timeoutMs: 300 })
  open({ hostname: '127.0.0.1', protocol: 'https:', port: String(port) }, (...[failure]) => resolve(failure))
  const [wire] = await within(accepted, 'a connection')
  const closed = once(wire, 'close')
  t.match(await within(promise, 'a result'), {
    code: 'UND_ERR_CONNECT_TIMEOUT',
    message: `Connect Timeout Error (attempted address: 127.0.0.1:${port}, timeout: 300ms)`,
  })
  await closed
})

await test('TLS gets what a name and its connection have left of the time, and not all of it once more', async (t) => {
  const name = 'late.causes.test'
  const timeoutMs = 60_000
  const names = lookupThreads(t, 8)
  names.silent.add(name)
  const { port } = await silentServer(t)
  const { promise, resolve } = Promise.withResolvers<Error | null>()
  const open = connector('api', { timeoutMs })
  open({ hostname: name, protocol: 'https:', port: String(port) }, (...[failure]) => resolve(failure))
  const now = performance.now.bind(performance)
  replace(t, performance, 'now', () => now() + timeoutMs)
  await until(() => names.unanswered(name) === 1)
  names.answer(name)
  t.match(await within(promise, 'a result'), { code: 'UND_ERR_CONNECT_TIMEOUT' })
})

await test('--check tells a name that no name server answers about, and a host that drops packets, from a lack of TLS', async (t) => {
  const names = lookupThreads(t, 8)
  for (const name of ['api.causes.test', 'sockets.causes.test', 'redis.causes.test']) names.silent.add(name)
  const { port, stall } = await stalledWay(t, 9)
  await stall()
  const config = readConfig({
    ...ALONE,
    AUTH_URL: `http://127.0.0.1:${port}`,
    API_URL: 'http://api.causes.test',
    WS_URL: 'ws://sockets.causes.test',
    REDIS_URL: 'redis://redis.causes.test',
  })
  const lines: string[] = []
  t.equal(await check(config, (line) => lines.push(line)), 69)
  const text = lines.join('\n')
  t.match(
    text,
    /API_URL +http:\/\/api\.causes\.test cannot be reached \(EAI_AGAIN\)\n +The name server does not respond/,
  )
  t.match(
    text,
    /WS_URL +ws:\/\/sockets\.causes\.test cannot be reached \(EAI_AGAIN\)\n +The name server does not respond/,
  )
  t.match(text, /REDIS_URL +redis\.causes\.test:6379 cannot be used \(EAI_AGAIN\)\n.*DNS on this machine/)
  t.match(text, new RegExp(`AUTH_URL +http://127.0.0.1:${port} cannot be reached .*\n +It does not respond`))
  t.notMatch(text, 'TLS')
})
