import { test } from 'tap'
import { ok, type RawRequest } from '../support/upstream/raw-upstream.ts'
import { startWorld, API } from '../support/world.ts'
import { ACCOUNTS } from '../support/user.ts'
const CALLS = Number(process.argv[2] ?? 1500)
const AT_ONCE = 25

await test(`${CALLS} mixed calls leave no connections, timers or memory behind`, async (t) => {
  const {
    call,
    connection,
    upstream,
    cookie,
    server: { app },
  } = await startWorld(t, API)
  const { server } = app.server
  const connections = (): Promise<number> =>
    new Promise((resolve) => void server.getConnections((_error, count) => resolve(count)))
  const fromLogIn = await connections()
  upstream.answer = (request, socket) => {
    switch (new URL(request.target, 'http://x').searchParams.get('do')) {
      case 'reset':
        return void socket.resetAndDestroy()
      case 'cut':
        return void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf')
      case 'error':
        return void socket.write('HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\nbody')
      case 'silent':
        return undefined
      default:
        return void socket.write(ok('x'.repeat(request.body.length + 100)))
    }
  }
  const leave = async (index: number): Promise<void> => {
    const arrived = new Promise<void>((resolve) =>
      seen.set(`/trading/v1/options/accounts?do=silent&n=${index}`, resolve),
    )
    const socket = await connection()
    socket.write(`GET ${ACCOUNTS}?do=silent&n=${index} HTTP/1.1\r\nHost: h\r\nX-CSRF: 1\r\nCookie: ${cookie}\r\n\r\n`)
    await arrived
    socket.destroy()
  }
  const seen = new Map<string, () => void>()
  const answerCall = upstream.answer
  upstream.answer = (request: RawRequest, socket) => {
    seen.get(request.target)?.()
    seen.delete(request.target)
    answerCall(request, socket)
  }
  const kinds: ((index: number) => Promise<unknown>)[] = [
    () => call('GET', ACCOUNTS),
    () => call('POST', ACCOUNTS, { body: 'x'.repeat(2000) }),
    () => call('POST', ACCOUNTS, { body: 'x'.repeat(2000), headers: { 'transfer-encoding': 'chunked' } }),
    () => call('GET', `${ACCOUNTS}?do=reset`),
    () => call('POST', `${ACCOUNTS}?do=reset`, { body: '{}' }),
    () => call('GET', `${ACCOUNTS}?do=cut`).catch(() => undefined),
    () => call('GET', `${ACCOUNTS}?do=error`),
    () => call('GET', '/api/nothing'),
    leave,
  ]
  let index = 0
  const worker = async (): Promise<void> => {
    while (index < CALLS) {
      const call = index++
      await kinds[call % kinds.length]?.(call)
      upstream.received.length = 0
      if (upstream.requests.length > 1000) upstream.requests.length = 0
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  await call('GET', ACCOUNTS)

  while ((await connections()) > fromLogIn) await new Promise((resolve) => void setTimeout(resolve, 20))
  t.pass('every browser has left')
  t.ok(upstream.open.size <= AT_ONCE, `${upstream.open.size} connections to upstream are left, to be used again`)
  const before = new Set(upstream.open)
  for (let count = 0; count < 10; count++) await call('GET', ACCOUNTS)
  t.ok(
    [...upstream.open].every((socket) => before.has(socket)),
    'and are',
  )
})
