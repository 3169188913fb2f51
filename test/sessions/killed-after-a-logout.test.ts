import { text } from 'node:stream/consumers'
import { test } from 'tap'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { scripted, tokens } from '../support/login/token-endpoint.ts'
import { httpServer } from '../support/server/http-server.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { until } from '../support/time/until.ts'
import { sendTo, userOf } from '../support/user.ts'
import { startParts } from '../support/world.ts'

await test('POST /auth/logout: when its instance is killed before it has revoked the tokens, whoever repeats it has that done', async (t) => {
  const revoked: (string | null)[] = []
  let isHeld = true
  const revocation = await httpServer(t, (request, response) => {
    void text(request).then((body) => {
      revoked.push(new URLSearchParams(body).get('token'))
      if (!isHeld) response.end()
    })
  })
  const parts = await startParts(t, {
    provider: scripted,
    redis: true,
    settings: { REVOCATION_URL: `${revocation}/revoke` },
  })
  const { settings, port, publicUrl, logIn, provider } = parts
  provider.behaviour = tokens({ refresh_token: 'the-refresh-token' })
  const [one, other] = await Promise.all([
    serverProcess(t, { ...settings, PORT: String(port) }),
    serverProcess(t, settings),
  ])
  for (const server of [one, other]) t.ok(await ready(server))
  const user = userOf(t, new JarBrowser(), { url: publicUrl, port, logIn })
  await user.logIn()
  const headers = { cookie: user.cookie, 'x-csrf': '1', origin: publicUrl }
  const logOutAt = async (at: number) => (await sendTo(at, 'POST', '/auth/logout', { headers })).status

  t.equal(await logOutAt(one.port), 204)
  await until(() => revoked.length === 1)
  one.child.kill('SIGKILL')
  await one.exited
  isHeld = false
  t.equal(await logOutAt(other.port), 204)
  t.equal((await sendTo(other.port, 'GET', '/auth/session', { headers })).json['authenticated'], false)
  await until(() => revoked.length === 3, 'both tokens are revoked', 15_000)
  t.same(revoked, ['the-refresh-token', 'the-refresh-token', 'the-access-token'])
  // The other one writes all of its log before it ends.
  other.child.kill('SIGTERM')
  await other.exited
  const lines = [one, other].map((each) => each.output().stdout.split('"audit":"session_ended"').length - 1)
  // A busy machine may have killed the first one only after it had written the line.
  t.ok(lines.includes(1), `the line is written: ${lines.join(' ')}`)
})
