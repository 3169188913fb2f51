import { createServer, type RequestListener } from 'node:http'
import { once } from 'node:events'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { closeNow, listen } from '../../../sandbox/listening.ts'

/** A connection that was idle for long is often closed just when a call is sent. */
const KEEP_ALIVE_MS = 30_000

/** Starts a server that a test scripts, on a free port unless one is named. It ends with the test. @returns its URL */
export async function httpServer(t: Test, respond: RequestListener, port = 0, host = '127.0.0.1'): Promise<string> {
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, respond)
  t.teardown(() => closeNow(server))
  return `http://${host}:${await listen(server, port, host)}`
}

/** A port that is taken until the end of the test: connections are accepted, and nothing is ever said on them. */
export async function takenPort(t: Test): Promise<number> {
  const silent = createTcpServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => silent.close())
  return (silent.address() as AddressInfo).port
}
