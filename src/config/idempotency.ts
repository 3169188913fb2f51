import { parseRedisUrl } from './redis-address.ts'
import { seconds, splitList } from './setting-formats.ts'
import { textOr, whole, type SettingRule, type ValuesOf } from './setting-rule.ts'

const MIB = 1_048_576
const DAY = 86_400

/** The settings of Idempotency-Keys. */
export const idempotencyRules = {
  REQUIRE_IDEMPOTENCY_KEY: textOr(
    'none',
    'apiPaths',
    'Calls that are refused without an Idempotency-Key: none, all, or comma-separated paths of the API',
  ),
  IDEMPOTENCY_REPLICAS: {
    kind: 'whole',
    description:
      'Replicas that must confirm the record of an Idempotency-Key before its call is sent: as many as a master has. 1 with Sentinel or a Cluster, else 0',
    minimum: 0,
    maximum: 10,
  },
  IDEMPOTENCY_TTL_SECONDS: whole(
    DAY,
    1,
    30 * DAY,
    'How long an Idempotency-Key counts, at most until its session ends',
  ),
  IDEMPOTENCY_MAX_BODY_BYTES: whole(262_144, 0, 16 * MIB, 'Largest body of a request with an Idempotency-Key'),
  IDEMPOTENCY_MAX_ANSWER_BYTES: whole(
    262_144,
    0,
    16 * MIB,
    'Largest response to a request with an Idempotency-Key that is kept for its repetition',
  ),
  IDEMPOTENCY_MAX_RECORDS: whole(
    1000,
    1,
    100_000,
    'Idempotency-Keys of one session whose responses are kept; twice as many are accepted',
  ),
  IDEMPOTENCY_MAX_KEPT_BYTES: whole(4 * MIB, 0, 1024 * MIB, 'Bytes of the responses that are kept for one session'),
} as const satisfies Record<string, SettingRule>

/** The settings of Idempotency-Keys, parsed. */
export function idempotencyConfig(
  settings: ValuesOf<typeof idempotencyRules> & { readonly REDIS_URL: string | undefined },
) {
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
