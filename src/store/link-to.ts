import { parseRedisUrl } from '../config/redis-address.ts'
import { ClusterLink } from './cluster-link.ts'
import { MasterLink } from './master-link.ts'
import type { RedisLink } from './redis-link.ts'
import { masterFinder } from './sentinels.ts'

/**
 * The link to the servers that a URL names.
 * @throws TypeError for an invalid URL, which the check of the settings rules out
 */
export function linkTo(url: string): RedisLink {
  const address = parseRedisUrl(url)
  switch (address?.is) {
    case undefined:
      throw new TypeError('not the address of a Redis')
    case 'single': {
      const server = { name: 'master', options: { url: address.url } }
      return new MasterLink(async () => server)
    }
    case 'sentinel':
      return new MasterLink(masterFinder(address))
    case 'cluster':
      return new ClusterLink(address)
  }
}
