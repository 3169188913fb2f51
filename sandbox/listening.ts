import { once } from 'node:events'
import type { Server } from 'node:http'
import { connect, createServer, type AddressInfo } from 'node:net'

const START_MS = 10_000

/**
 * Listens, and answers with the port that was taken (0 asks for any free one).
 * @throws the listening error as it came, EADDRINUSE for a taken port
 */
export async function listen(server: Server, port: number, host: string): Promise<number> {
  await once(server.listen(port, host), 'listening')
  return (server.address() as AddressInfo).port
}

/** Stops at once, without waiting for anybody. A second call does nothing. */
export async function closeNow(server: Server): Promise<void> {
  if (!server.listening) return
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}

/**
 * Above 10080, the last port that browsers and fetch refuse (Fetch standard, "bad port"), and below the ports that
 * systems give to outgoing connections, which would take a free one away again.
 */
const FIRST_PORT = 10_100
const PORTS = 12_000

/** Processes of one time begin elsewhere and never go back, so that two do not find the same port free at the same moment. */
const PORTS_OF_A_PROCESS = 50
let next = process.pid * PORTS_OF_A_PROCESS

/**
 * A port nobody listens on at the moment.
 * @param above how far above it another one must be free too
 */
export async function freePort(above = 0): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + (next++ % PORTS)
    if ((await isFree(port)) && (await isFree(port + above))) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}

/**
 * Resolves when somebody listens on a port of this machine.
 * @throws the connection error when nobody does in time
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
