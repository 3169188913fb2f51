import { testSentinel } from '../support/redis/topologies.ts'
import { testReplicatedStore } from './replicated-store.ts'

await testReplicatedStore('Behind Sentinels', testSentinel)
