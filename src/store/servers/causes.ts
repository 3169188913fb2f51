import { WRITE_REFUSALS, type WriteRefusal } from '../../telemetry/store-observer.ts'

/** Why the store cannot serve, or not everything: a code, and what an operator should do. Contains no secret. */
export const ADVICE: Readonly<Record<string, string>> = {
  OOM: 'Redis is full, so nobody can log in, and calls with an Idempotency-Key get 503; everything else goes on. Raise maxmemory (REDIS_MAXMEMORY with compose), or find what fills it.',
  MISCONF: 'Redis cannot write to its disk. Make room there, or put the disk right.',
  NOREPLICAS: 'Too few replicas of Redis are connected (min-replicas-to-write). Put the replicas right.',
  READONLY: 'This Redis is a replica. Name the master, or let Sentinels name it.',
  MASTERDOWN: 'This Redis is a replica without its master. Name the master, or let Sentinels name it.',
  LOADING:
    'Redis is still loading its data. Wait; if it takes long, look at the size of its append-only file and at its disk.',
  BUSY: 'Redis runs a script or a function for too long, which is none of this server. Find it, and end it with SCRIPT KILL or FUNCTION KILL.',
  CLUSTERDOWN:
    'The Cluster does not serve (cluster_state:fail). Look for slots without a master, and for masters that are down: redis-cli --cluster check.',
  NOPERM:
    'Give the user of REDIS_URL the rights that docs/operating/redis.md names (ACL): commands, keys that begin with bff:1: and {bff:1:, and the channels of bff:1:.',
  NOAUTH: 'REDIS_URL has no password, and Redis wants one.',
  WRONGPASS: 'Check user and password in REDIS_URL: Redis does not know them.',
  NOTRACKING:
    'This Redis has no CLIENT TRACKING for this user, so an instance would not learn of a logout elsewhere. Allow it (ACL: +client|tracking), or use a Redis, Valkey or Redict that has it: docs/compatibility.md.',
  UNKNOWN:
    'Redis does not know this command, or has renamed it. Use a Redis, Valkey or Redict without renamed commands: docs/compatibility.md.',
  SILENT: 'Check that this master runs, and the network on the way there.',
}

/** The meanings of the reasons for which a link is down, where they are no code of {@link ADVICE}. */
const MEANINGS: Readonly<Record<string, string>> = {
  'it is a slave': 'READONLY',
  silence: 'SILENT',
  deadline: 'SILENT',
  ETIMEDOUT: 'SILENT',
  CommandTimeout: 'SILENT',
  ECONNREFUSED: 'SILENT',
  closed: 'SILENT',
}

/** The remedy for a code, or for the reason for which a link is down; undefined for one that speaks for itself. */
export function adviceFor(reason: string): string | undefined {
  return ADVICE[MEANINGS[reason] ?? reason]
}

/** A reason with its remedy. */
export function explained(reason: string, detail?: string): string {
  const advice = adviceFor(reason)
  const what = detail === undefined ? reason : `${reason}: ${detail}`
  return advice === undefined ? what : `${what}. ${advice}`
}

/** The reason for which a server refused a write. Undefined when the code of its error means something else. */
export function writeRefusalOf(code: string | undefined): WriteRefusal | undefined {
  return WRITE_REFUSALS.find((reason) => reason === code?.toLowerCase())
}
