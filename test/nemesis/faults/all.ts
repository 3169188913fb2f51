import type { Fault } from '../fault.ts'
import { brokenConnectionsOfRedis } from './broken-connections-of-redis.ts'
import { busyRedis } from './busy-redis.ts'
import { cutReplies } from './cut-replies.ts'
import { deafRedis } from './deaf-redis.ts'
import { emptiedRedis } from './emptied-redis.ts'
import { failedDiskOfRedis } from './failed-disk-of-redis.ts'
import { failedNetworkOfUpstream } from './failed-network-of-upstream.ts'
import { failedOverAfterAnEnd } from './failed-over-after-an-end.ts'
import { failedOverRedis } from './failed-over-redis.ts'
import { failingUpstream } from './failing-upstream.ts'
import { fewerMastersOfRedis } from './fewer-masters-of-redis.ts'
import { flushedRedis } from './flushed-redis.ts'
import { forgottenConnections } from './forgotten-connections.ts'
import { forgottenCredentialsOfRedis } from './forgotten-credentials-of-redis.ts'
import { frozenRedis } from './frozen-redis.ts'
import { frozenTabs } from './frozen-tabs.ts'
import { fullRedis } from './full-redis.ts'
import { halfOpenSockets } from './half-open-sockets.ts'
import { heldRedis } from './held-redis.ts'
import { informationalResponses } from './informational-responses.ts'
import { jumpedClock } from './jumped-clock.ts'
import { killedAfterALogout } from './killed-after-a-logout.ts'
import { killedInstance } from './killed-instance.ts'
import { lateExecution } from './late-execution.ts'
import { lateReplicasOfRedis } from './late-replicas-of-redis.ts'
import { limitedCalls } from './limited-calls.ts'
import { limitedRefreshes } from './limited-refreshes.ts'
import { longStoppedInstance } from './long-stopped-instance.ts'
import { lostAnswers } from './lost-answers.ts'
import { lostFirstPackets } from './lost-first-packets.ts'
import { lostPurchases } from './lost-purchases.ts'
import { lostRepliesOfRedis } from './lost-replies-of-redis.ts'
import { lostTokenReplies } from './lost-token-replies.ts'
import { manyRefusedRefreshes } from './many-refused-refreshes.ts'
import { offlinePages } from './offline-pages.ts'
import { pauseBesideOtherSecrets } from './pause-beside-other-secrets.ts'
import { olderInstance } from './previous-version.ts'
import { readOnlyRedis } from './read-only-redis.ts'
import { refusedAuthOfRedis } from './refused-auth-of-redis.ts'
import { refusedLogins } from './refused-logins.ts'
import { refusedProvider } from './refused-provider.ts'
import { refusedRedis } from './refused-redis.ts'
import { refusedRefreshes } from './refused-refreshes.ts'
import { refusedUpstream } from './refused-upstream.ts'
import { reloadedPages } from './reloaded-pages.ts'
import { reshardedRedis } from './resharded-redis.ts'
import { restartedRedis } from './restarted-redis.ts'
import { rolledInstance } from './rolled-instance.ts'
import { rolledBeforeTokensAreSaved } from './rolled-before-tokens-are-saved.ts'
import { rotatedKeys } from './rotated-keys.ts'
import { silentIdentity } from './silent-identity.ts'
import { silentNames } from './silent-names.ts'
import { silentProvider } from './silent-provider.ts'
import { silentUpstream } from './silent-upstream.ts'
import { slowProvider } from './slow-provider.ts'
import { slowRedis } from './slow-redis.ts'
import { slowUpstream } from './slow-upstream.ts'
import { stoppedInstance } from './stopped-instance.ts'
import { strangers } from './strangers.ts'
import { takenRights } from './taken-rights.ts'
import { twoOperators } from './two-operators.ts'
import { unauthorizedCalls } from './unauthorized-calls.ts'
import { unansweredCalls } from './unanswered-calls.ts'
import { wrongSecrets } from './wrong-secrets.ts'

/**
 * Faults that a plan has only where a patch or FAULTS names them: they have been seen with few seeds so far. One that is known to leave
 * the product as it is in peace moves to those that any plan may have.
 */
const NEW_FAULTS: readonly Fault[] = [rolledBeforeTokensAreSaved, strangers]

/** Every fault that any plan may have. The order decides what a seed means, so a new one comes last. */
const USUAL_FAULTS: readonly Fault[] = [
  ...[heldRedis, cutReplies, stoppedInstance, silentProvider, silentNames, lateReplicasOfRedis],
  ...[refusedRedis, deafRedis, lostRepliesOfRedis, frozenRedis, fullRedis, readOnlyRedis, takenRights],
  ...[refusedAuthOfRedis, restartedRedis, emptiedRedis],
  ...[refusedRefreshes, limitedRefreshes, lostTokenReplies, slowProvider, refusedProvider],
  ...[unauthorizedCalls, limitedCalls, silentUpstream, halfOpenSockets, informationalResponses, lateExecution],
  ...[refusedUpstream, slowUpstream],
  ...[killedInstance, rolledInstance, longStoppedInstance, jumpedClock, twoOperators, wrongSecrets],
  ...[lostFirstPackets, lostAnswers, forgottenConnections],
  ...[failedOverRedis, slowRedis, flushedRedis, brokenConnectionsOfRedis, busyRedis, failedDiskOfRedis],
  ...[refusedLogins, failingUpstream, silentIdentity, rotatedKeys],
  ...[lostPurchases],
  ...[reloadedPages, offlinePages, frozenTabs, killedAfterALogout, olderInstance],
  ...[manyRefusedRefreshes, forgottenCredentialsOfRedis, fewerMastersOfRedis, failedOverAfterAnEnd],
  ...[pauseBesideOtherSecrets, reshardedRedis, failedNetworkOfUpstream, unansweredCalls],
]

/** Every fault. */
export const ALL_FAULTS: readonly Fault[] = [...USUAL_FAULTS, ...NEW_FAULTS]

const NAMES = process.env['FAULTS']?.split(',')

/** The faults of which plans are made: all that any plan may have, or those whose names are in FAULTS. */
export const PLANNED_FAULTS = NAMES === undefined ? USUAL_FAULTS : ALL_FAULTS.filter(({ name }) => NAMES.includes(name))
