import { request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { partKey } from '../../src/store/keys.ts'
import { tokenWorld } from '../support/login/token-world.ts'
import { until } from '../support/time/until.ts'
import { held, json, scripted, tokens } from '../support/login/token-endpoint.ts'
import { ACCOUNTS } from '../support/user.ts'
import { startWorld } from '../support/world.ts'

await test('a server that ends while a token is being renewed saves the new one: the old one is used up', async (t) => {
  const world = await startWorld(t, { provider: scripted, upstream: 'scripted', redis: true, instances: 2 })
  const { provider, servers } = world
  const [first, second] = servers
  if (first === undefined || second === undefined) throw new Error('there are two')
  const waiting = held(tokens({ access_token: 'second', refresh_token: 'refresh-2', expires_in: 3600 }))
  const used = new Set<string | null>()
  provider.behaviour = (asked, response, form) => {
    const token = form.get('refresh_token')
    const grant = form.has('code') ? tokens({ refresh_token: 'refresh', expires_in: 0.001 }) : waiting.behaviour
    const answer = form.has('refresh_token') && used.has(token) ? json({ error: 'invalid_grant' }, 400) : grant
    used.add(token)
    answer(asked, response, form)
  }
  const user = await world.user('CR1')
  const headers = { cookie: user.cookie, 'x-csrf': '1' }
  const call = request({ port: first.port, path: ACCOUNTS, headers }).on('error', () => undefined)
  call.end()
  await waiting.asked
  call.destroy()
  const closing = first.close()
  await Promise.race([closing, delay(1000)])
  waiting.release()
  await closing
  t.equal((await user.call('GET', ACCOUNTS, { at: second })).status, 200)
})

await test('a server that ends waits for no renewal of another, and begins none', async (t) => {
  const { here, session, store, endpoint } = await tokenWorld(t)
  const [one, other] = [await session(0), await session(0)]
  await store.lock(partKey(one.key, 'refresh'), 'another process', 60_000)
  const lookup = here.renewed(one)
  await until(() => store.locks > 2, 'it is tried again')
  await here.close()
  for (const each of [lookup, here.renewed(other)]) {
    t.match(await each, { is: 'providerDown', cause: { message: 'another process holds the refresh lock' } })
  }
  t.equal(endpoint.forms.length, 0)
})
