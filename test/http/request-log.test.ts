import { connect, type AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { Guard } from '../../src/http/guard.ts'
import { createServer } from '../../src/http/server.ts'
import { loggerOptions } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { ALONE } from '../support/server/settings.ts'
import { nextEvent, until } from '../support/time/until.ts'

await test('the log line of a request is JSON and names its client, also after the connection has closed', async (t) => {
  const lines: string[] = []
  const log = pino(loggerOptions('info'), { write: (line: string) => void lines.push(line) })
  const { http } = readConfig({ ...ALONE, TRUST_PROXY: '1' })
  const metrics = createMetrics()
  const server = createServer(http, log, metrics, new Guard(http, log, metrics))
  t.teardown(() => server.close())
  server.get('/gone', async (request) => {
    request.raw.socket.destroy()
    await delay(20)
    return 'too late'
  })
  await server.listen({ host: '127.0.0.1', port: 0 })
  const { port } = server.server.address() as AddressInfo
  for (const [header, client] of [
    ['', '127.0.0.1'],
    ['X-Forwarded-For: 192.0.2.1:4711\r\n', '192.0.2.1'],
  ] as const) {
    lines.length = 0
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    socket.write(`GET /gone HTTP/1.1\r\nHost: h\r\n${header}\r\n`)
    await nextEvent(socket.resume(), 'close')
    await until(() => lines.length > 0)
    t.match(JSON.parse(lines[0] ?? ''), { msg: 'request', route: '/gone', status: 499, client })
  }
})
