import { formats } from './setting-formats.ts'
import { flag, optional, seconds, whole, wholeFrom, withDefault } from './setting-rule.ts'

const MIB = 1_048_576
const DAY = 86_400

/** The settings of Idempotency-Keys. */
export const idempotencySettings = {
  requiredFor: withDefault('REQUIRE_IDEMPOTENCY_KEY', 'none', formats.apiPaths).means(
    'Calls that are refused without an Idempotency-Key: none, all, or comma-separated paths of the API',
  ),
  replicas: optional('IDEMPOTENCY_REPLICAS', wholeFrom(0, 10)).means(
    'Replicas that must confirm the record of an Idempotency-Key before its call is sent: as many as a master has. 1 with Sentinel or a Cluster, else 0',
  ),
  ttlMs: seconds('IDEMPOTENCY_TTL_SECONDS', DAY, [1, 30 * DAY]).means(
    'How long an Idempotency-Key counts, at most until its session ends',
  ),
  maxBodyBytes: whole('IDEMPOTENCY_MAX_BODY_BYTES', 262_144, [0, 16 * MIB]).means(
    'Largest body of a request with an Idempotency-Key',
  ),
  maxAnswerBytes: whole('IDEMPOTENCY_MAX_ANSWER_BYTES', 262_144, [0, 16 * MIB]).means(
    'Largest response to a request with an Idempotency-Key that is kept for its repetition',
  ),
  maxRecords: whole('IDEMPOTENCY_MAX_RECORDS', 1000, [1, 100_000]).means(
    'Idempotency-Keys of one session whose responses are kept; twice as many are accepted',
  ),
  maxKeptBytes: whole('IDEMPOTENCY_MAX_KEPT_BYTES', 4 * MIB, [0, 1024 * MIB]).means(
    'Bytes of the responses that are kept for one session',
  ),
  isCompact: flag('IDEMPOTENCY_COMPACT', false).means(
    'Writes the records of Idempotency-Keys in a form that takes half of the memory, and that version 0.3 cannot read',
  ),
}
