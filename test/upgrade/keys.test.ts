import { join } from 'node:path'
import { test } from 'tap'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { codeOf } from '../support/idempotency/keyed-world.ts'
import { previousVersion } from '../support/server/previous-version.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server/server-process.ts'
import { userOf } from '../support/user.ts'
import { startParts } from '../support/world.ts'

await test('Version 0.3, this version, and this version with compact records, on one Redis', async (t) => {
  const previous = await previousVersion()
  if (previous === undefined) throw new Error('git does not have version 0.3')
  const { settings, port, publicUrl, logIn, upstream } = await startParts(t, { upstream: 'raw', redis: true })
  const [current, compact, old] = await Promise.all([
    serverProcess(t, { ...settings, PORT: String(port) }),
    serverProcess(t, { ...settings, IDEMPOTENCY_COMPACT: 'true' }),
    // Its log has the form of its version, and is not looked at here.
    serverProcess(t, settings, { main: join(previous, 'src/main.ts'), log: join(t.testdir({}), 'log') }),
  ])
  for (const server of [current, compact, old]) t.ok(await ready(server))
  const user = userOf(t, new JarBrowser(), { url: publicUrl, port, logIn })
  await user.logIn()
  const repeat = async (key: string, first: ServerProcess, second: ServerProcess) => {
    upstream.reset()
    const answer = await user.order({ key, at: first })
    t.equal(answer.status, 200, key)
    const again = await user.order({ key, at: second })
    t.equal(upstream.requests.length, 1, key)
    return { answer, again }
  }

  await t.test('answer repetitions of what the other version has answered', async (t) => {
    for (const [key, first, second] of [
      ['"old, this"', old, current],
      ['"this, old"', current, old],
      ['old, compact', old, compact],
      ['this, compact', current, compact],
      ['compact, this', compact, current],
    ] as const) {
      const { answer, again } = await repeat(key, first, second)
      t.same([again.status, again.bytes], [answer.status, answer.bytes], key)
      t.equal(again.headers['idempotency-replayed'], 'true', key)
      t.equal(codeOf(await user.order({ key, at: second, body: '{"amount":2}' })), 'idempotency_key_reused', key)
    }
  })

  await t.test('send nothing again where version 0.3 cannot read what was answered', async (t) => {
    for (const key of ['compact, old', '"quoted, compact, old"']) {
      const { again } = await repeat(key, compact, old)
      t.equal(codeOf(again), 'outcome_unknown')
    }
  })

  await t.test('send a key once that both get at once', async (t) => {
    for (const [name, one, two] of [
      ['old and this', old, current],
      ['old and compact', old, compact],
      ['this and compact', current, compact],
    ] as const) {
      upstream.reset()
      const keys = Array.from({ length: 40 }, (_, index) =>
        index % 2 === 0 ? `${name} ${index}` : `"${name} ${index}"`,
      )
      await Promise.all(keys.flatMap((key) => [one, two, one, two].map((at) => user.order({ key, at }))))
      t.equal(upstream.requests.length, keys.length, name)
    }
  })
})
