import { SESSION_PATH, type Server } from '../base/server.ts'
import { bodyOf, type SessionBody } from './session-state.ts'
import { RESPONSE_TIMEOUT_MS } from './session-times.ts'

/**
 * Asks the server for the session.
 * @returns undefined if the response is not valid, so that the session may or may not be alive
 * @throws the error of `fetch`
 */
export async function fetchSession(server: Server): Promise<SessionBody | undefined> {
  const sentAt = performance.now()
  const response = await server.fetch(SESSION_PATH, {
    signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
  })
  const body = response.ok ? bodyOf(await response.json()) : undefined
  if (body) server.onTime?.(body.now, sentAt)
  return body
}
