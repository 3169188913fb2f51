import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'

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
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const { method, url: path, headers } = request
      // The address that browsers know, as a balancer would pass it on.
      const own = { ...headers, host: `127.0.0.1:${providerPort}` }
      httpRequest({ host: '127.0.0.1', port: providerPort, method, path, headers: own }, resolve)
        .on('error', reject)
        .end(body)
    })
    const answered = await buffer(answer)
    const { statusCode: status = 502, headers } = answer
    const form = new URLSearchParams(body.toString())
    const seen = { form, headers: request.headers, path: request.url ?? '', status }
    if (form.get('grant_type') === 'refresh_token') gate.refreshes.push(seen)
    else if (form.has('token')) gate.revocations.push(seen)
    const { 'content-length': _, 'transfer-encoding': __, ...rest } = headers
    const isToken = form.has('grant_type') && status === 200
    response.writeHead(status, rest).end(isToken ? relabelled(answered, gate.expiresIn) : answered)
  }
  const server = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const gate: TokenGate = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
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

function relabelled(answer: Buffer, expiresIn: number | undefined): Buffer | string {
  if (expiresIn === undefined) return answer
  return JSON.stringify({ ...(JSON.parse(answer.toString()) as object), expires_in: expiresIn })
}
