import type { RequestListener } from 'node:http'
import type { Test } from 'tap'
import { createClient, type Client, type ServerOptions } from '../../../client/dist/client.js'
import { httpServer } from '../server/http-server.ts'

/** A client of a server that responds like this. Both end with the test. */
export async function clientOf(t: Test, respond: RequestListener, options: ServerOptions = {}): Promise<Client> {
  const client = createClient({ baseUrl: await httpServer(t, respond), ...options })
  t.teardown(() => client.close())
  return client
}
