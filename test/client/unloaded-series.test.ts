import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { test } from 'tap'
import type { createClient } from '../../client/dist/client.js'

const CORE = new URL('../../client/dist/client.js', import.meta.url)

class NoSocket {
  readonly readyState = 0
  readonly bufferedAmount = 0
  close(): void {}
}

await test('a series whose code cannot be loaded tells so, unless it was stopped before', async (t) => {
  // The entry with the series is not beside it.
  const dir = t.testdir({ 'client.js': await readFile(CORE, 'utf8') })
  const core = (await import(pathToFileURL(join(dir, 'client.js')).href)) as { createClient: typeof createClient }
  const client = core.createClient({ baseUrl: 'http://server.test', WebSocket: NoSocket as never })
  t.teardown(() => client.close())
  const socket = client.publicSocket()
  const stopped = socket.series({ symbol: 'R_100', style: 'ticks' })
  const told: unknown[] = []
  stopped.subscribe(() => told.push(stopped.get()))
  stopped.stop()
  const chart = socket.series({ symbol: 'R_100', style: 'ticks' })
  await new Promise<void>((resolve) => chart.subscribe(resolve))
  t.match(chart.get(), { points: [], error: { name: 'SocketError', code: 'not_loaded' } })
  t.same(told, [])
  t.same(stopped.get(), { points: [] })
})
