import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { createClient, type Client, type ServerOptions } from '../../../client/dist/client.js'

/** A client of a server that responds like this. Both end with the test. */
export async function clientOf(t: Test, respond: RequestListener, options: ServerOptions = {}): Promise<Client> {
  const server = createServer(respond).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = createClient({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, ...options })
  t.teardown(() => {
    client.close()
    server.closeAllConnections()
    server.close()
  })
  return client
}
