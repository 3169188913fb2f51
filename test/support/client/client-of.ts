import { createServer, type RequestListener } from 'node:http'
import type { Test } from 'tap'
import { createClient, type Client, type ServerOptions } from '../../../client/dist/client.js'
import { closeNow, listen } from '../../../sandbox/listening.ts'

/** A client of a server that responds like this. Both end with the test. */
export async function clientOf(t: Test, respond: RequestListener, options: ServerOptions = {}): Promise<Client> {
  const server = createServer(respond)
  const client = createClient({ baseUrl: `http://127.0.0.1:${await listen(server, 0, '127.0.0.1')}`, ...options })
  t.teardown(async () => {
    client.close()
    await closeNow(server)
  })
  return client
}
