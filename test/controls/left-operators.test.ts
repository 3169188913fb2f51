import { execFileSync } from 'node:child_process'
import { test } from 'tap'
import { control, controlsWorld, shown } from '../support/controls/controls-world.ts'
import { OPS_TOKEN } from '../support/login/identity.ts'

/** An operator sends this and leaves, before this process runs again. */
function asksAndLeaves(opsUrl: string, method: string, body = ''): void {
  const { hostname, port } = new URL(opsUrl)
  const head = `${method} /controls/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${OPS_TOKEN}\r\n`
  const request = `${head}Content-Length: ${body.length}\r\n\r\n${body}`
  const script = `require('node:net').connect(${port}, '${hostname}').end(${JSON.stringify(request)}, () => process.exit())`
  execFileSync(process.execPath, ['-e', script])
}

await test('orders are not lifted for an operator who left while the instance stood still, and they are paused for one', async (t) => {
  const { server } = await controlsWorld(t, { instances: 1 })
  const isPaused = async (): Promise<boolean> => (await shown(server)).orders !== null
  t.equal(await isPaused(), false)
  asksAndLeaves(server.opsUrl, 'PUT', '{"paused":true}')
  t.equal(await isPaused(), true)
  asksAndLeaves(server.opsUrl, 'DELETE')
  t.equal(await isPaused(), true)
  t.equal((await control(server, 'DELETE', '/orders')).status, 200)
  t.equal(await isPaused(), false)
})
