import type { FastifyRequest } from 'fastify'
import { accountTag } from '../telemetry/log-tag.ts'
import { ID } from './endpoint.ts'

/** Notes for the log which trading account the path of a request names, if it can be one. */
export function noteAccount(request: FastifyRequest, parameter: string, secrets: readonly string[]): void {
  const { [parameter]: id = '' } = request.params as Record<string, string>
  if (ID.test(id)) request.accountTag = accountTag(secrets, id)
}
