import type { Fault } from '../fault.ts'
import { cutReplies } from './cut-replies.ts'
import { heldRedis } from './held-redis.ts'
import { lateReplicasOfRedis } from './late-replicas-of-redis.ts'
import { lostAnswers } from './lost-answers.ts'
import { lostFirstPackets } from './lost-first-packets.ts'
import { silentNames } from './silent-names.ts'
import { silentProvider } from './silent-provider.ts'
import { stoppedInstance } from './stopped-instance.ts'

/** Every fault that a plan may have. The order decides what a seed means, so a new one comes last. */
export const ALL_FAULTS: readonly Fault[] = [
  heldRedis,
  cutReplies,
  stoppedInstance,
  silentProvider,
  silentNames,
  lateReplicasOfRedis,
  lostFirstPackets,
  lostAnswers,
]
