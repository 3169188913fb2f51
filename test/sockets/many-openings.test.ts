import { test } from 'tap'
import { held, scripted, tokens } from '../support/login/token-endpoint.ts'
import { until } from '../support/time/until.ts'
import { PUBLIC, TRADING } from '../support/user.ts'
import { startWorld } from '../support/world.ts'

await test('sockets of one session that wait for its token leave room for those of others', async (t) => {
  const settings = { MAX_RELAYS: '24', MAX_RELAYS_PER_SESSION: '2' }
  const world = await startWorld(t, { upstream: 'scripted', provider: scripted, settings })
  world.provider.behaviour = tokens({ expires_in: 0.001, refresh_token: 'a-refresh-token' })
  await world.logIn()
  const renewal = held()
  world.provider.behaviour = renewal.behaviour
  const sockets = Array.from({ length: 30 }, () => world.socket(TRADING))
  const refused: unknown[] = []
  for (const { closed } of sockets) void closed.then((close) => refused.push(close))
  await renewal.asked
  await until(() => refused.length >= 22, 'all but eight are refused')
  t.equal(refused.length, 22)
  for (const close of refused) t.same(close, { code: 4429, reason: 'too_many_relays' })
  const market = await world.visitor().socket(PUBLIC).opened()
  for (const { socket } of [market, ...sockets]) socket.terminate()
  renewal.release()
})
