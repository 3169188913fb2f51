import { readFileSync } from 'node:fs'
import type { RedisProcess } from '../../../sandbox/redis-process.ts'
import { askRedis } from './topologies.ts'

const TEXT = readFileSync(new URL('../../../docs/operating/redis.md', import.meta.url), 'utf8')
const [, USER = '', RIGHTS = ''] = /^user (bff) (on >password .*)$/m.exec(TEXT) ?? []
const [, CLUSTER_RIGHTS = ''] = /With Cluster it needs `([^`]*)`/.exec(TEXT) ?? []

/** The commands that docs/operating/redis.md tells an operator to allow, those for a Cluster apart. */
export const DOCUMENTED_COMMANDS: readonly string[] = [...RIGHTS.matchAll(/\+(\S+)/g)].map(([, name = '']) => name)

type Server = Pick<RedisProcess, 'url'>

/** Adds the user of the documentation to servers, and returns the URL with that user. */
export async function withDocumentedRights(
  { url, nodes }: { readonly url: string; readonly nodes: readonly Server[] },
  isCluster = false,
): Promise<string> {
  const rights = isCluster ? `${RIGHTS} ${CLUSTER_RIGHTS}` : RIGHTS
  for (const node of nodes) await askRedis(node, ['ACL', 'SETUSER', USER, ...rights.split(/\s+/)])
  return url.replaceAll('://', `://${USER}:password@`)
}

/** What the servers have denied to that user. */
export async function deniedOn(nodes: readonly Server[]): Promise<string[]> {
  const logs = await Promise.all(nodes.map((node) => askRedis(node, ['ACL', 'LOG'])))
  return (logs as unknown[][]).flat().map((entry) => JSON.stringify(entry))
}
