import { test } from 'tap'
import type { CommandFault, ConnectionFault } from '../support/redis/command-proxy.ts'
import { bystandersOf } from './bystanders.ts'
import { cluster, clusterWithReplicas, sentinel, single, twoWorkers, withTls, type StartHouse } from './houses.ts'
import { startScene } from './scene.ts'
import { FAULTS, sufferAll, type Trouble } from './suffer.ts'

/** `npm run test:every-command` has all houses and pairs. TROUBLES names some of what happens there. */
const { PAIRS = '211', EVERY = '8', SEED = '1', HOUSE = 'a Cluster|two workers|one Redis', TROUBLES = '' } = process.env

const all = (faults: readonly CommandFault[], counts?: RegExp): Trouble[] =>
  faults.map((fault) => ({ fault, ...(counts && { counts }) }))
const lostThen = (opening: readonly ConnectionFault[]): Trouble => ({ fault: 'is lost', opening })
const WITHOUT_REPLY: readonly CommandFault[] = ['gets no reply', 'is lost', 'is executed late', 'gets a late reply']
const REDIRECTIONS: readonly CommandFault[] = [
  '-MOVED <slot> <other>',
  '-ASK <slot> <other>',
  '-TRYAGAIN Multiple keys request during rehashing of slot',
]
const CONNECTIONS: readonly (readonly ConnectionFault[])[] = [
  ['is refused'],
  ['is reset'],
  ['is silent'],
  ['is reset', 'is refused', 'is reset'],
]
/** What a repetition, or a command that repairs, suffers. */
const REPEATED: readonly CommandFault[] = [
  'gets no reply',
  'is executed late',
  '-LOADING Redis is loading the dataset in memory',
]
/** What a connection says for itself before it is used. */
const OPENING: readonly RegExp[] = [/^HELLO/, /^CLIENT TRACKING/, /^ROLE/, /bff:1:probe/]
const NO_REPLICAS = '-NOREPLICAS Not enough good replicas to write.'

const HOUSES: Record<string, readonly [start: StartHouse, troubles: Readonly<Record<string, readonly Trouble[]>>]> = {
  'a Cluster': [
    cluster,
    {
      alone: all(FAULTS),
      redirections: all([...REDIRECTIONS, '-CLUSTERDOWN The cluster is down']),
      'two in a row': [
        ...REDIRECTIONS.flatMap((fault) => WITHOUT_REPLY.map((next) => ({ fault, next: { fault: next } }))),
        ...REDIRECTIONS.map((fault) => ({ fault, next: { fault } })),
      ],
      connections: [{ breaks: 'SUBSCRIBE' }, ...CONNECTIONS.map(lostThen)],
    },
  ],
  'a Cluster with replicas': [
    clusterWithReplicas,
    {
      redirections: all(['-MOVED <slot> <other>', '-ASK <slot> <other>'], /bff:1:idempotency|:ended/),
      replicas: all([...WITHOUT_REPLY, ':0'], /^WAIT /),
    },
  ],
  Sentinels: [
    sentinel,
    {
      alone: all([...FAULTS, NO_REPLICAS]),
      replicas: all([...WITHOUT_REPLY, ':0', 'gets a last reply'], /^WAIT /),
      'roles of servers': all(WITHOUT_REPLY, /^(ROLE|INFO replication)/),
      connections: [
        { breaks: 'WAIT' },
        ...CONNECTIONS.map(lostThen),
        ...WITHOUT_REPLY.map((fault): Trouble => ({ fault: 'is lost', next: { fault, counts: /^SENTINEL/ } })),
      ],
    },
  ],
  'two workers': [twoWorkers, { alone: all(FAULTS) }],
  TLS: [withTls, { alone: all(WITHOUT_REPLY), connections: CONNECTIONS.map(lostThen) }],
  'one Redis': [
    single,
    {
      'two in a row': FAULTS.flatMap((fault) => REPEATED.map((next) => ({ fault, next: { fault: next } }))),
      connections: [
        { fault: 'gets a last reply' },
        ...CONNECTIONS.map(lostThen),
        ...OPENING.flatMap((counts) =>
          ([...WITHOUT_REPLY, 'gets a last reply'] as const).map((fault): Trouble => ({
            fault: 'is lost',
            next: { fault, counts },
          })),
        ),
      ],
    },
  ],
}

await test(`In whatever house a command of a journey fails, what is told is true, the user can go on, and others are served (SEED=${SEED})`, async (t) => {
  const wanted = Object.entries(HOUSES).filter(([house]) =>
    new RegExp(`^(${HOUSE === '' ? '.*' : HOUSE})$`).test(house),
  )
  const sample = { pairs: Number(PAIRS), step: Number(EVERY), seed: Number(SEED), scenes: 1 }
  const all = wanted.map(async ([house, [start, kinds]]) => {
    const troubles = Object.entries(kinds).flatMap(([kind, some]) => (kind.includes(TROUBLES) ? some : []))
    const begin = async () => {
      const scene = await startScene(t, {}, start)
      return Object.assign(scene, { bystanders: await bystandersOf(scene) })
    }
    const played = await sufferAll(t, begin, troubles, sample)
    t.comment(`${played} commands with ${house}`)
    return played
  })
  const played = await Promise.all(all)
  t.ok(played.some((commands) => commands > 0))
})
