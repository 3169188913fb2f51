import { testCluster } from '../support/redis/topologies.ts'
import { testReplicatedStore } from './replicated-store.ts'

await testReplicatedStore('On a Cluster', testCluster)
