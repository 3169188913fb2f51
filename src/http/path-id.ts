import type { FastifyRequest } from 'fastify'
import { accountTag } from '../telemetry/log-tag.ts'

/** What an id in a path may be (docs/reference.md, REST). */
export const ID = /^[A-Za-z0-9_-]{1,64}$/

/** Notes for the log which trading account the path of a request names, if it can be one. */
export function noteAccount(request: FastifyRequest, parameter: string, secrets: readonly string[]): void {
  const { [parameter]: id = '' } = request.params as Record<string, string>
  if (ID.test(id)) request.accountTag = accountTag(secrets, id)
}
