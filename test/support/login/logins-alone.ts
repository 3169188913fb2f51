import type { Test } from 'tap'
import { Changeable } from '../../../src/config/changing.ts'
import { LoginCookies } from '../../../src/login/login-cookies.ts'
import { LoginTransactions, type LoginTicket } from '../../../src/login/login-transactions.ts'
import { Envelope } from '../../../src/sessions/envelope.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'

export const TTL_MS = 60_000
export const START = {
  flow: 'signup',
  returnTo: '/chart',
  attributed: true,
  sessionKey: undefined,
  hasNonce: false,
} as const

/** Logins without a server, and a browser that keeps their cookies. */
export function alone(secrets = ['a secret']) {
  const store = new MemoryStore()
  const cookies = new LoginCookies({ prefix: '__Host-', secure: true }, new Changeable(secrets))
  const envelope = new Envelope(new Changeable(secrets))
  const logins = new LoginTransactions(store, envelope, cookies, TTL_MS)
  const jar: string[] = []
  return {
    store,
    cookies,
    envelope,
    logins,
    header: () => jar.join('; '),
    start: async (options: Partial<Parameters<LoginTransactions['start']>[1]> = {}): Promise<LoginTicket> => {
      const { ticket } = await logins.start(jar.join('; '), { ...START, ...options })
      jar.push(`${ticket.cookie.name}=${ticket.cookie.value}`)
      return ticket
    },
  }
}

/** Begins to complete a login. */
export async function begun(
  t: Test,
  { logins, header }: ReturnType<typeof alone>,
  state: string,
): Promise<LoginTicket> {
  const consumed = await logins.consume(header(), state)
  t.equal(consumed.is, 'fresh')
  if (consumed.is !== 'fresh') throw new Error(consumed.is)
  return consumed.ticket
}
