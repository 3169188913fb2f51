import { test } from 'tap'
import { RenewedTokens } from '../../src/sessions/renewed-tokens.ts'
import { SharedRefusals } from '../../src/sessions/shared-refusals.ts'
import { sessionKey } from '../../src/store/keys.ts'
import { standstill } from '../../src/time/standstill.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { askRedis, testCluster, testSentinel } from '../support/redis/topologies.ts'
import { until } from '../support/time/until.ts'

for (const [where, start] of [
  ['With Sentinels', testSentinel],
  ['On a Cluster', testCluster],
] as const) {
  await test(`${where}, instances share the refusals of refreshes, and the renewals that 401s have caused`, async (t) => {
    const topology = await start(t)
    const [here, there] = [await connectedStore(t, topology.url), await connectedStore(t, topology.url)]
    const [refusing, granting] = [new SharedRefusals(here), new SharedRefusals(there)]
    const users = Array.from({ length: 8 }, (_, index) => ({
      key: sessionKey(`session ${index}`),
      tokens: 'first',
      name: `user-${index}`,
      source: `user-${index}`,
      tokenExpiresAt: Date.now() - 1000,
    }))
    for (const user of users) t.match(await refusing.refused(user, 'access_denied', undefined), { ends: false })
    for (const user of users) {
      const record = await granting.read(user.key)
      t.ok((await granting.leftMs(record ?? '', user)) > 20_000)
      const [, , others] = await Promise.all([
        new RenewedTokens(here).note(user.key),
        new RenewedTokens(here).note(user.key),
        until(async () => (await new RenewedTokens(there).recent(user.key)) !== undefined),
      ])
      t.equal(others, undefined)
      t.match(await new RenewedTokens(there).recent(user.key), { isAccepted: false })
    }
    granting.granted(standstill.now(), 'bob')
    await until(async () => {
      const [user] = users
      if (user === undefined) return true
      return (await refusing.refused(user, 'access_denied', await refusing.read(user.key))).ends
    }, 'another instance hears of a grant')
    for (const { key } of users) await granting.forget(key)
    for (const { key } of users) t.equal(await refusing.read(key), undefined)
    for (const master of await topology.masters()) {
      for (const key of (await askRedis(master, ['KEYS', '*'])) as string[]) {
        t.ok(Number(await askRedis(master, ['PTTL', key])) <= 3_600_000, `${key} is forgotten after an hour`)
      }
    }
  })
}
