import { textOr, whole, type SettingRule } from './setting-rule.ts'

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
      'Replicas that must confirm the record of an Idempotency-Key before its call is sent: as many as may be promoted. 1 with Sentinel or a Cluster, else 0',
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
