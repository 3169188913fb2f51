import { testSentinel } from '../support/redis-topologies.ts'
import { keepsItsPromises } from './replicas.ts'

await keepsItsPromises('behind Sentinels', testSentinel)
