import { test } from 'tap'
import { askRedis, testMasters } from '../support/redis/topologies.ts'
import { isLoggedIn, scripted } from '../support/login/token-endpoint.ts'
import { untilSlow as until } from '../support/time/until.ts'
import { logOut } from '../support/user.ts'
import { startWorld } from '../support/world.ts'

for (const lost of ['login', 'session'] as const) {
  await test(`GET /auth/login: a master of a Cluster that ${lost === 'login' ? 'is gone' : 'takes no writes'}, and has the last ${lost} of a browser, does not keep it from logging in`, async (t) => {
    const nodes = await testMasters(t, 2)
    const [failing, serving] = nodes
    if (failing === undefined || serving === undefined) throw new Error('no master')
    const settings = { REDIS_URL: nodes.map(({ url }) => url).join(',') }
    const { server, browser, logIn } = await startWorld(t, { provider: scripted, settings })
    const stands = async (node: typeof failing, kind: string): Promise<number> =>
      ((await askRedis(node, ['KEYS', `bff:1:${kind}:*`])) as string[]).length
    const other = lost === 'login' ? 'session' : 'login'
    await until(async () => {
      for (const node of nodes) await askRedis(node, ['FLUSHALL'])
      browser.cookies.clear()
      await logIn()
      return (await stands(failing, lost)) === 1 && (await stands(serving, other)) === 1
    }, 'the two are apart')
    const keys = (await askRedis(failing, ['KEYS', `bff:1:${lost}:*`])) as string[]
    if (lost === 'login') await failing.close()
    else await askRedis(failing, ['CONFIG', 'SET', 'min-replicas-to-write', '1'])
    // New ones may be meant for that master, too; they are tried again.
    await until(async () => (await logIn()).url.search === '', 'a login succeeds')
    t.ok(await isLoggedIn(browser, server.url))
    if (lost === 'session') {
      await askRedis(failing, ['CONFIG', 'SET', 'min-replicas-to-write', '0'])
      return until(async () => (await askRedis(failing, ['EXISTS', ...keys])) === 0, 'the former session ends')
    }
    t.equal(await stands(serving, 'session'), 1, 'the session that its start brought has ended')
    t.equal((await logOut(browser, server.url)).status, 503, 'that login may have made another one')
  })
}
