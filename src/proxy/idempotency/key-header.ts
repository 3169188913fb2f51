import type { FastifyRequest } from 'fastify'
import type { Config } from '../../config/config.ts'
import { Problem } from '../../problem.ts'
import type { Endpoint } from '../endpoint.ts'

const NAME = 'idempotency-key'
const KEY = /^[\x20-\x7e]{1,255}$/

/** Whether calls of an endpoint are refused without a key (REQUIRE_IDEMPOTENCY_KEY). */
export function requiresKey({ path }: Endpoint, { requiredFor }: Pick<Config['idempotency'], 'requiredFor'>): boolean {
  return requiredFor === 'all' || requiredFor.has(path)
}

/** The Idempotency-Key of a request, if it has one. @throws Problem bad_request, idempotency_key_required */
export function keyOf({ raw }: FastifyRequest, isRequired: boolean): string | undefined {
  const key = raw.headers[NAME]
  if (key === undefined) {
    if (isRequired) throw new Problem('idempotency_key_required')
    return undefined
  }
  // Node joins repeated headers, so that two keys would look like a third.
  if (typeof key !== 'string' || !KEY.test(key) || raw.headersDistinct[NAME]?.length !== 1) {
    throw new Problem('bad_request', {
      detail: 'An Idempotency-Key must be one text of 1 to 255 printable ASCII characters.',
    })
  }
  return key
}
