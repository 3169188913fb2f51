import { seconds, splitList } from './setting-formats.ts'
import { parseRedisUrl } from './redis-address.ts'
import type { Settings } from './settings.ts'

/** The settings of Idempotency-Keys, parsed. */
export function idempotencyConfig(settings: Settings) {
  return {
    requiredFor: requiredFor(settings.REQUIRE_IDEMPOTENCY_KEY),
    replicas: settings.IDEMPOTENCY_REPLICAS ?? defaultReplicas(settings.REDIS_URL),
    ttlMs: seconds(settings.IDEMPOTENCY_TTL_SECONDS),
    maxBodyBytes: settings.IDEMPOTENCY_MAX_BODY_BYTES,
    maxAnswerBytes: settings.IDEMPOTENCY_MAX_ANSWER_BYTES,
    maxRecords: settings.IDEMPOTENCY_MAX_RECORDS,
    maxKeptBytes: settings.IDEMPOTENCY_MAX_KEPT_BYTES,
  }
}

/** Where a replica may be promoted, one must have the records. */
function defaultReplicas(redisUrl: string | undefined): number {
  const kind = redisUrl === undefined ? undefined : parseRedisUrl(redisUrl)?.is
  return kind === 'sentinel' || kind === 'cluster' ? 1 : 0
}

/** The paths of REQUIRE_IDEMPOTENCY_KEY, with the parameters written as in the catalog. */
export function requiredFor(value: string): 'all' | ReadonlySet<string> {
  if (value === 'all') return 'all'
  return new Set(value === 'none' ? [] : splitList(value).map((path) => path.replaceAll(/\{(\w+)\}/g, ':$1')))
}
