import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { BudgetClass } from '../../../src/config/upstream-budget.ts'

interface Arrival {
  readonly at: number
  readonly budgetClass: BudgetClass
  /** The access token of the call, which shows whose it is; empty without one. */
  readonly token: string
}

/** An upstream that only writes down when calls arrive. Its one-time URLs are refused, which costs a call all the same. */
export interface CountingUpstream {
  readonly url: string
  /** When calls arrived (ms), in order, and their class. */
  readonly arrivals: Arrival[]
  /** Answers in place of the upstream if it returns true. */
  intercept: (budgetClass: BudgetClass, response: ServerResponse, token: string) => boolean
}

/** Starts one that ends with the test. */
export async function countingUpstream(t: Test): Promise<CountingUpstream> {
  const upstream = { url: '', arrivals: [] as CountingUpstream['arrivals'], intercept: () => false }
  const server = createServer((request, response) => {
    const isOtp = request.url?.endsWith('/otp') === true
    const budgetClass: BudgetClass = isOtp ? 'otps' : request.method === 'GET' ? 'reads' : 'orders'
    const token = tokenOf(request)
    upstream.arrivals.push({ at: performance.now(), budgetClass, token })
    request.resume()
    if ((upstream as CountingUpstream).intercept(budgetClass, response, token)) return
    response.writeHead(isOtp ? 403 : 200, { 'content-type': 'application/json' }).end('{}')
  })
  // A connection that was idle for long is often closed just when a call is sent.
  server.keepAliveTimeout = 30_000
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  upstream.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return upstream
}

function tokenOf({ headers }: IncomingMessage): string {
  return headers.authorization?.replace('Bearer ', '') ?? ''
}
