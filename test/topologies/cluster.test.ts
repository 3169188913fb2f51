import { testCluster } from '../support/redis-topologies.ts'
import { keepsItsPromises } from './replicas.ts'

await keepsItsPromises('on a Cluster', testCluster)
