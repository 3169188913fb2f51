import type { Kind } from './row.ts'

const SUITES = {
  'One server': [
    'test/store/*.test.ts',
    'test/topologies/single.test.ts',
    'test/login/{logout-everywhere,transactions}.test.ts',
    'test/sessions/{expiry,replicated-logout,session-replacement,sessions,subjects,touches}.test.ts',
    'test/sockets/session-end.test.ts',
  ],
  'Sentinel, Cluster': [
    'test/topologies/{availability,cluster,cluster-members,credentials,scale-down,sentinel,session-socket}.test.ts',
  ],
}
/** Debian's Redis, whose programs have the names that the tests use. */
const REDIS_PROGRAMS = { 'redis-server': '/usr/bin/redis-server', 'redis-cli': '/usr/bin/redis-cli' }
const VALKEY_PROGRAMS = { 'redis-server': '/usr/bin/valkey-server', 'redis-cli': '/usr/bin/valkey-cli' }

export const REDIS: Kind = {
  title: 'Redis, Valkey, Redict',
  text: `*One server:* what the store needs, each cause of [the table below](#why-a-store-is-unavailable), the rights of [the
documentation](operating/redis.md#rights-of-the-user-of-redis), without each of them and with those of managed services, TLS,
passwords that change, a full and a hanging server, logins and sessions. *Sentinel, Cluster:* masters that die, move, come
and go, passwords that change under load, a Cluster behind one address.`,
  columns: Object.keys(SUITES),
  rows: [
    { id: 'redis-7.0', product: 'Redis', from: { installed: 'redis-server' }, suites: SUITES },
    {
      id: 'redis-8.0.2',
      product: 'Redis',
      from: { debian: 'trixie', packages: ['redis-server'], programs: REDIS_PROGRAMS },
      suites: SUITES,
    },
    {
      id: 'redis-8.0.6',
      product: 'Redis',
      from: { debian: 'forky', packages: ['redis-server'], programs: REDIS_PROGRAMS },
      suites: SUITES,
    },
    {
      id: 'valkey-8',
      product: 'Valkey',
      from: { debian: 'trixie', packages: ['valkey-server'], programs: VALKEY_PROGRAMS },
      suites: SUITES,
    },
    {
      id: 'valkey-9',
      product: 'Valkey',
      from: { debian: 'forky', packages: ['valkey-server'], programs: VALKEY_PROGRAMS },
      suites: SUITES,
    },
    {
      id: 'redict',
      product: 'Redict',
      from: {
        debian: 'forky',
        packages: ['redict'],
        programs: { 'redis-server': '/usr/bin/redict-server', 'redis-cli': '/usr/bin/redict-cli' },
      },
      suites: SUITES,
    },
    {
      id: 'keydb',
      product: 'KeyDB',
      from: {
        debian: 'sid',
        packages: ['keydb-server'],
        programs: { 'redis-server': '/usr/bin/keydb-server', 'redis-cli': '/usr/bin/keydb-cli' },
      },
      suites: SUITES,
    },
  ],
}
