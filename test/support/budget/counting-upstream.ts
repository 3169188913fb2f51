import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Test } from 'tap'
import type { BudgetClass } from '../../../src/config/upstream-budget.ts'
import { httpServer } from '../server/http-server.ts'

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
  upstream.url = await httpServer(t, (request, response) => {
    const isOtp = request.url?.endsWith('/otp') === true
    const budgetClass: BudgetClass = isOtp ? 'otps' : request.method === 'GET' ? 'reads' : 'orders'
    const token = tokenOf(request)
    upstream.arrivals.push({ at: performance.now(), budgetClass, token })
    request.resume()
    if ((upstream as CountingUpstream).intercept(budgetClass, response, token)) return
    response.writeHead(isOtp ? 403 : 200, { 'content-type': 'application/json' }).end('{}')
  })
  return upstream
}

function tokenOf({ headers }: IncomingMessage): string {
  return headers.authorization?.replace('Bearer ', '') ?? ''
}
