import type { ServerResponse } from 'node:http'
import { test } from 'tap'
import type { Client } from '../../client/dist/client.js'
import { listSessions, logOutAtProvider } from '../../client/dist/client/sessions.js'
import { clientOf } from '../support/client/client-of.ts'
import { failure } from '../support/client/page-client.ts'
import { HeldTimers } from '../support/time/held-timers.ts'

const SESSION = '{"authenticated":true,"now":1,"expires_at":3601,"idle_expires_at":601,"scope":"trade","session":"s"}'

const asked: Readonly<Record<string, (client: Client) => Promise<unknown>>> = { listSessions, logOutAtProvider }

for (const [name, ask] of Object.entries(asked)) {
  for (const what of ['stalls', 'breaks off']) {
    await test(`${name}() rejects with an ApiError when the answer of the server ${what}`, async (t) => {
      const minute = new HeldTimers(t, 'setTimeout', 60_000)
      let answering: ServerResponse | undefined
      const respond = async (url: string, init: RequestInit): Promise<Response> => {
        const response = await fetch(url, init)
        // The page has the status by then, and waits for the body.
        setImmediate(() => void (what === 'stalls' ? minute.run() : answering?.destroy()))
        return response
      }
      const client = await clientOf(
        t,
        ({ url }, response) => {
          if (url === '/auth/session') return void response.end(SESSION)
          response.writeHead(200, { 'content-type': 'application/json', 'x-request-id': 'id' }).write('{')
          answering = response
        },
        { fetch: respond },
      )
      await client.session.check()
      t.match(await failure(ask(client)), { name: 'ApiError', status: 0, code: undefined })
      t.equal(minute.size, 0)
      t.equal(client.session.get().status, 'active', 'nothing has said that it is over')
    })
  }
}
