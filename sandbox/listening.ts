import { once } from 'node:events'
import type { Server } from 'node:http'
import { connect, createServer, type AddressInfo } from 'node:net'

const START_MS = 10_000

/**
 * Starts to listen on a port, or on any free port if it is 0.
 * @returns the port
 * @throws the error of the server, such as EADDRINUSE
 */
export async function listen(server: Server, port: number, host: string): Promise<number> {
  await once(server.listen(port, host), 'listening')
  return (server.address() as AddressInfo).port
}

/** Closes a server and all of its connections. A second call does nothing. */
export async function closeNow(server: Server): Promise<void> {
  if (!server.listening) return
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}

/**
 * The range is above 10080, the last port that browsers and fetch refuse (Fetch standard, "bad port"), and below the
 * ephemeral ports, where an outgoing connection could take a free port.
 */
const FIRST_PORT = 10_100

/**
 * Tests that run at the same time have different job numbers, so two of them never choose the same free port. A program
 * that a test starts has no number, and a range of its own: it must not take a port that its test has chosen for it.
 */
const JOBS = 10
const PORTS_PER_JOB = 1500
// oxlint-disable-next-line node/no-process-env -- this is no setting; the test runner sets it
const { TAP_JOB_ID } = process.env
if (Number(TAP_JOB_ID ?? 0) > JOBS)
  throw new Error(`Tests have ports for ${JOBS} jobs (sandbox/listening.ts), and this is another one: ${TAP_JOB_ID}`)
const firstPort = FIRST_PORT + PORTS_PER_JOB * (TAP_JOB_ID === undefined ? JOBS : Number(TAP_JOB_ID) % JOBS)

/** The processes of one test start at different offsets, and only move forward. */
const PORTS_PER_PROCESS = 50
let next = process.pid * PORTS_PER_PROCESS

/**
 * A port on which nothing listens at the moment.
 * @param above the port this far above must be free, too
 */
export async function freePort(above = 0): Promise<number> {
  for (;;) {
    const port = firstPort + (next++ % PORTS_PER_JOB)
    if ((await isFree(port)) && (await isFree(port + above))) return port
  }
}

/** Whether nothing listens on a port. @throws the error of the system, such as EADDRNOTAVAIL, if nothing can */
export async function isFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port, host), 'listening')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}

/**
 * Resolves when a server listens on a port of this machine.
 * @throws the connection error if none does within 10 s
 */
export async function answers(port: number): Promise<void> {
  const giveUpAt = Date.now() + START_MS
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return
    } catch (error) {
      if (Date.now() > giveUpAt) throw error
      await new Promise((resolve) => void setTimeout(resolve, 20))
    } finally {
      socket.destroy()
    }
  }
}
