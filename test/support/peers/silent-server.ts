import { once } from 'node:events'
import { createServer, type AddressInfo, type Server } from 'node:net'
import type { Test } from 'tap'

/** A server that accepts connections, and then says nothing. It ends with the test. */
export async function silentServer(t: Test): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer().on('connection', (socket) => {
    socket.on('error', () => undefined).resume()
    t.teardown(() => socket.destroy())
  })
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, port: (server.address() as AddressInfo).port }
}
