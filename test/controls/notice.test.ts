import { test } from 'tap'
import { control, controlsWorld, shown } from '../support/controls/controls-world.ts'
import { valueOf } from '../support/telemetry/metrics.ts'
import { until } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'

type Body = Record<string, unknown>

const state = async (port: number, headers: Record<string, string> = {}): Promise<Body> =>
  (await (await fetch(`http://127.0.0.1:${port}/auth/session`, { headers })).json()) as Body

await test('a notice is in GET /auth/session and on the session sockets of all instances, until it is lifted', async (t) => {
  const { servers, user } = await controlsWorld(t)
  const { cookie, socket: open } = await user('CR1')
  const sockets = await Promise.all(
    servers.map(async (at) => {
      const socket = open('/ws/session', { at })
      await socket.count(1)
      return socket
    }),
  )
  for (const { texts } of sockets) t.notMatch(texts[0], 'notice')
  const message = '<b>Prices</b> of R_100 are "late" – & so on 👩‍🔧'
  t.match(await control(servers[1], 'PUT', '/notice', { message }), { status: 200, json: { version: Number } })
  for (const [at, socket] of sockets.entries()) {
    t.same(JSON.parse((await socket.count(2))[1]?.data.toString() ?? ''), { event: 'notice', notice: { message } })
    t.same((await state(servers[at]?.port ?? 0, { cookie }))['notice'], { message })
    t.same((await state(servers[at]?.port ?? 0))['notice'], { message }, 'without a session, too')
  }
  t.equal(await valueOf(servers[2].opsUrl, 'bff_notice_shown'), 1)
  const late = open('/ws/session')
  t.match(JSON.parse((await late.count(1))[0]?.data.toString() ?? ''), {
    event: 'session',
    authenticated: true,
    notice: { message },
  })
  await control(servers[2], 'DELETE', '/notice')
  for (const socket of [...sockets, late]) {
    await until(() => socket.texts.at(-1) === '{"event":"notice","notice":null}')
  }
  t.notOk('notice' in (await state(servers[0].port, { cookie })))
  for (const { texts } of sockets) t.equal(texts.length, 3)
  const audits = servers[1].log.filter(({ audit }) => audit === 'controls_changed')
  t.match(audits, exactly({ control: 'notice', action: 'set', text: message }))
})

await test('a notice with until goes by itself, and a new one replaces it', async (t) => {
  const world = await controlsWorld(t, { instances: 1, redis: false })
  const { server } = world
  const user = await world.user('CR1')
  const socket = user.socket('/ws/session')
  await socket.count(1)
  await control(server, 'PUT', '/notice', { message: 'first' })
  const end = Math.floor(Date.now() / 1000) + 2
  const second = await control(server, 'PUT', '/notice', { message: 'second', until: end })
  await until(() => socket.texts.length === 4)
  t.ok(Date.now() >= end * 1000)
  t.same(socket.texts.slice(1), [
    '{"event":"notice","notice":{"message":"first"}}',
    `{"event":"notice","notice":{"message":"second","until":${end}}}`,
    '{"event":"notice","notice":null}',
  ])
  t.match(await shown(server), { notice: null, version: second.json['version'] })
})
