import fs, { type ReadStream } from 'node:fs'
import { connect } from 'node:net'
import { test } from 'tap'
import { ALONE } from '../support/server/settings.ts'
import { testServer } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'

for (const [what, headers] of [
  ['as it is', ''],
  ['compressed', 'Accept-Encoding: gzip\r\n'],
] as const) {
  await test(`a browser that leaves before index.html is opened, to be sent ${what}, costs no line of an error`, async (t) => {
    const { createReadStream, open } = fs
    const begun = Promise.withResolvers<{ stream: ReadStream; proceed: () => void }>()
    t.intercept(fs, 'createReadStream', {
      value(path: string, options: object) {
        const slow = (...given: Parameters<typeof open>): void =>
          begun.resolve({ stream, proceed: () => void open(...given) })
        const stream = createReadStream(path, { ...options, fs: { ...fs, open: slow as typeof open } })
        return stream
      },
    })
    const { port, log } = await testServer(t, { ...ALONE, STATIC_DIR: t.testdir({ 'index.html': '1' }) })
    const socket = connect(port, '127.0.0.1')
    socket.write(`GET /deep/link HTTP/1.1\r\nHost: h\r\nAccept: text/html\r\nContent-Length: 0\r\n${headers}\r\n`)
    const { stream, proceed } = await begun.promise
    socket.resetAndDestroy()
    await until(() => log.some(({ msg }) => msg === 'request'), 'it is noticed')
    const closed = new Promise<void>((resolve) => stream.once('close', resolve))
    proceed()
    await closed
    // The failure of a stream is handled in the turn of its close.
    await new Promise(setImmediate)
    t.same(
      log.filter(({ level }) => Number(level) >= 50),
      [],
    )
    t.match(
      log.filter(({ msg }) => msg === 'request'),
      [{ status: 499 }],
    )
  })
}
