import { test } from 'tap'
import { control, controlsWorld, pause } from '../support/controls/controls-world.ts'
import { startLogin } from '../support/login/token-endpoint.ts'
import { until } from '../support/time/until.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'

const BUY = '{"buy":"x","price":1}'

for (const end of ['a new login of the browser', 'a logout'] as const) {
  await test(`an order that waits for the identification of its session is not sent after ${end} has ended that`, async (t) => {
    const world = await controlsWorld(t, { instances: 1 })
    const { server } = world
    const { onIdentity: answer } = world.upstream
    const other = await world.instance()
    world.upstream.onIdentity = (_request, response) => answerJson(response, 500, {})
    const user = await world.user('CR2')
    const { browser } = user
    const { browser: socket, seen } = await world.trade(user, other)
    const { json } = await pause(server, { subject: 'CR1' })
    await world.agreed(json['version'], [server, other])
    const gates: (() => void)[] = []
    // Those of the socket, the call and the new login.
    world.upstream.onIdentity = (request, response) => void gates.push(() => answer(request, response))
    socket.socket.send(BUY)
    await until(() => gates.length === 1, 'the session is identified before its order')
    const call = user.order({ at: other })
    if (end === 'a logout') await user.logOut()
    else {
      world.upstream.onIdentity = answer
      await (await startLogin({ browser, server })).finish({ code: 'CR2' })
    }
    for (const gate of gates) gate()
    t.match(await socket.closed, { code: 4401 })
    t.same(seen, [])
    t.equal((await call).status, 401)
    t.same(world.orders, [])
    await control(server, 'DELETE', '/orders?subject=CR1')
  })
}
