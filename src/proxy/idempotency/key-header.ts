import type { FastifyRequest } from 'fastify'
import type { Config } from '../../config/config.ts'
import { isRepeated } from '../../http/repeated-header.ts'
import { Problem } from '../../problem.ts'
import type { Endpoint } from '../endpoint.ts'

const NAME = 'idempotency-key'
const KEY = /^[\x20-\x7e]{1,255}$/
/** A String of RFC 9651 §3.3.3 without parameters. */
const QUOTED = /^"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/

/** Whether calls of an endpoint are refused without a key (REQUIRE_IDEMPOTENCY_KEY). */
export function requiresKey({ path }: Endpoint, { requiredFor }: Pick<Config['idempotency'], 'requiredFor'>): boolean {
  return requiredFor === 'all' || requiredFor.has(path)
}

/** The Idempotency-Key of a request, if it has one. @throws Problem bad_request, idempotency_key_required */
export function keyOf({ raw }: FastifyRequest, isRequired: boolean): string | undefined {
  const header = raw.headers[NAME]
  if (header === undefined) {
    if (isRequired) throw new Problem('idempotency_key_required')
    return undefined
  }
  // Node joins repeated headers, so that two keys would look like a third.
  const key = typeof header === 'string' && !isRepeated(raw.rawHeaders, NAME) ? unquoted(header) : undefined
  if (key !== undefined && KEY.test(key)) return key
  throw new Problem('bad_request', {
    detail: 'An Idempotency-Key must be one text of 1 to 255 printable ASCII characters, in double quotes or without.',
  })
}

/** Undefined if the header is half quoted. */
function unquoted(header: string): string | undefined {
  const quoted = QUOTED.exec(header)?.[1]
  if (quoted !== undefined) return quoted.replaceAll(/\\(.)/g, '$1')
  return header.startsWith('"') || header.endsWith('"') ? undefined : header
}
