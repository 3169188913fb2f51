import type { ServerResponse } from 'node:http'
import { test, type Test } from 'tap'
import { IDENTIFIED } from '../support/login/identity.ts'
import { scripted, tokens } from '../support/login/token-endpoint.ts'
import { until } from '../support/time/until.ts'
import { ACCOUNTS } from '../support/user.ts'
import { startWorld } from '../support/world.ts'

/** The renewals that a process makes at once. */
const MOST = 64
/** The failures after which refreshes pause. */
const FAILURES = 5
/** The logins of others meanwhile. */
const LOGINS = 20
/** A world whose users have no subject, but an address. */
const ADDRESSED = {
  provider: scripted,
  upstream: 'scripted',
  settings: { TRUST_PROXY: '1', AUTH_STARTS_PER_MINUTE: '0' },
} as const

const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })

/**
 * So many sessions of one user, and one of another, whose tokens have to be renewed.
 * @param trouble what becomes of a refresh of the first user
 */
async function usersOf(
  t: Test,
  count: number,
  trouble: (response: ServerResponse) => void,
  parts: typeof IDENTIFIED | typeof ADDRESSED = IDENTIFIED,
) {
  const world = await startWorld(t, parts)
  world.provider.behaviour = (request, response, form) => {
    const user = form.get('code') ?? form.get('refresh_token')?.replace('refresh-', '') ?? ''
    if (form.has('refresh_token') && user === 'CR1') return trouble(response)
    const lifetime = form.has('code') ? 0.001 : 3600
    const grant = { access_token: `of-${user}`, refresh_token: `refresh-${user}`, expires_in: lifetime }
    tokens(grant)(request, response, form)
  }
  const own = await Promise.all(Array.from({ length: count }, () => world.user('CR1')))
  return { world, own, other: await world.user('CR2') }
}

for (const [tells, parts] of [
  ['subject', IDENTIFIED],
  ['address', ADDRESSED],
] as const) {
  await test(`a user for whom alone the provider is slow takes a quarter of the renewals, and others need not wait for them: users are told apart by their ${tells}`, async (t) => {
    const held: ServerResponse[] = []
    const { own, other } = await usersOf(t, MOST, (response) => void held.push(response), parts)
    const statuses: number[] = []
    for (const user of own)
      void user.call('GET', ACCOUNTS, from('192.0.2.1')).then(({ status }) => statuses.push(status))
    await until(() => held.length + statuses.length === MOST)
    t.equal((await other.call('GET', ACCOUNTS, from('192.0.2.2'))).status, 200)
    t.equal(held.length, MOST / 4)
    t.same(new Set(statuses), new Set([503]))
    for (const response of held) response.destroy()
  })
}

await test('a user at whom alone the provider fails, again and again, keeps nobody else from a renewal', async (t) => {
  let failed = 0
  const { own, other } = await usersOf(t, FAILURES, (response) => {
    failed++
    response.writeHead(500).end()
  })
  for (const user of own) t.equal((await user.call('GET', ACCOUNTS)).status, 503)
  t.equal(failed, FAILURES)
  t.equal((await other.call('GET', ACCOUNTS)).status, 200)
})

await test('a session at which alone the provider fails is tried ever less often, although it works for others meanwhile', async (t) => {
  let failed = 0
  const { world, own } = await usersOf(t, 1, (response) => {
    failed++
    response.writeHead(500).end()
  })
  for (let login = 0; login < LOGINS; login++) {
    for (const user of own) t.equal((await user.call('GET', ACCOUNTS)).status, 503)
    await world.user('CR3')
  }
  t.ok(failed < LOGINS / 2, `${failed} refreshes`)
})
