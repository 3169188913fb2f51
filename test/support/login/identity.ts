import type { TestServer } from '../server/test-server.ts'
import { scripted } from './token-endpoint.ts'
import { IDENTITY_PATH } from '../upstream/scripted-upstream.ts'

/** The secret of the operators of every world. */
export const OPS_TOKEN = 'the-token-of-the-operators-of-a-test'

/** The settings with which upstream says whose a session is. */
export const IDENTITY = {
  IDENTITY_PATH,
  IDENTITY_POINTER: '/data/id',
  OPS_TOKEN,
  AUTH_STARTS_PER_MINUTE: '0',
} as const

/** A world whose users have subjects: their names. */
export const IDENTIFIED = { provider: scripted, upstream: 'scripted', settings: IDENTITY } as const

/** A request of an operator. */
export function operate(
  { opsUrl }: Pick<TestServer, 'opsUrl'>,
  method: 'GET' | 'DELETE',
  query: Record<string, string>,
  token: string = OPS_TOKEN,
): Promise<Response> {
  const headers = { authorization: `Bearer ${token}` }
  return fetch(`${opsUrl}/sessions?${new URLSearchParams(query).toString()}`, { method, headers })
}
