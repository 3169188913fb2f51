import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import { passOn } from '../login/pass-on.ts'
import { httpServer } from '../server/http-server.ts'

/** A request that went through the gate, and the status of its response. */
interface GatedRequest {
  readonly form: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly path: string
  readonly status: number
}

/** Stands before the endpoints of a provider that only this server calls: the inside address of TOKEN_URL. */
export interface TokenGate {
  readonly url: string
  readonly refreshes: GatedRequest[]
  readonly revocations: GatedRequest[]
  /** The expires_in of the next tokens; undefined: the provider's own. */
  expiresIn: number | undefined
  /** Sends a refresh request once more, with a token. @returns its status */
  readonly replay: (request: GatedRequest, refreshToken: string) => Promise<number>
}

/** Starts one that ends with the test, before a provider on a port of this machine. */
export async function tokenGate(t: Test, providerPort: number): Promise<TokenGate> {
  const pass = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(request)
    // The address that browsers know, as a balancer would pass it on.
    const headers = { ...request.headers, host: `127.0.0.1:${providerPort}` }
    const passed = await passOn(request, body, { host: '127.0.0.1', port: providerPort }, headers)
    const form = new URLSearchParams(body.toString())
    const seen = { form, headers: request.headers, path: request.url ?? '', status: passed.status }
    if (form.get('grant_type') === 'refresh_token') gate.refreshes.push(seen)
    else if (form.has('token')) gate.revocations.push(seen)
    passed.send(response, gate.expiresIn)
  }
  const gate: TokenGate = {
    url: await httpServer(t, (request, response) => void pass(request, response).catch(() => response.destroy())),
    refreshes: [],
    revocations: [],
    expiresIn: undefined,
    async replay({ form, headers, path }, refreshToken) {
      const body = new URLSearchParams(form)
      body.set('refresh_token', refreshToken)
      const { authorization } = headers
      const response = await fetch(`http://127.0.0.1:${providerPort}${path}`, {
        method: 'POST',
        body,
        headers: authorization === undefined ? {} : { authorization },
      })
      return response.status
    },
  }
  return gate
}
