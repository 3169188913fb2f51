import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { OPS_TOKEN } from '../support/login/identity.ts'
import { said, twoWorkers } from '../support/server/two-workers.ts'
import { until } from '../support/time/until.ts'

/** Options of Node.js with which the first worker stands still when it reads that a pause is lifted, until there is a file. */
const standingStill = (file: string): readonly string[] => {
  const code = `import cluster from 'node:cluster'
    import { existsSync, writeSync } from 'node:fs'
    if (cluster.worker?.id === 1) process.on('message', ({ ask, command }) => {
      if (ask !== 'command' || command.change?.value !== null) return
      writeSync(1, '{"msg":"stands still"}\\n')
      do Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000)
      while (!existsSync(${JSON.stringify(file)}))
      writeSync(1, '{"msg":"goes on"}\\n')
    })`
  return ['--import', `data:text/javascript,${encodeURIComponent(code)}`]
}

await test('WORKERS: a lift that a worker reads late, after its operator has left, does not end a later pause', async (t) => {
  const file = join(t.testdir({}), 'go-on')
  const server = await twoWorkers(t, { OPS_TOKEN }, { nodeOptions: standingStill(file) })
  const ops = async (method: string, path = '', { body, signal }: { body?: object; signal?: AbortSignal } = {}) =>
    fetch(`http://127.0.0.1:${server.opsPort}/controls${path}`, {
      method,
      headers: { authorization: `Bearer ${OPS_TOKEN}` },
      ...(body && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    })
  const pause = async (message: string): Promise<number> =>
    (await ops('PUT', '/orders', { body: { paused: true, message } })).status

  t.equal(await pause('first'), 200)
  const leaves = new AbortController()
  const lift = ops('DELETE', '/orders', { signal: leaves.signal }).catch(() => undefined)
  await until(() => said(server, 'stands still').length === 1, 'the first worker stands still')
  leaves.abort()
  await lift
  t.equal(await pause('second'), 200)
  writeFileSync(file, '')
  await until(() => said(server, 'goes on').length === 1, 'the first worker goes on')
  // The first worker does this after what it read before.
  t.equal((await ops('PUT', '/notice', { body: { message: 'third' } })).status, 200)
  const noted = () => said(server, 'an operator has changed the controls')
  await until(() => noted().length > 2, 'all changes are noted')
  t.same(new Set(noted().map(({ text }) => text)), new Set(['first', 'second', 'third']))
  t.match(await (await ops('GET')).json(), { orders: { message: 'second' } })
})
