import { test } from 'tap'
import { SECRETS } from '../support/server/test-server.ts'
import { ownSecret } from './faults/wrong-secrets.ts'
import type { Fleet, Instance } from './fleet.ts'

await test('an instance keeps its own secret while an earlier fault is healed, and in the end all have all', (t) => {
  const held: string[][] = []
  const instances = [0, 1].map((at) => ({
    name: `instance ${at}`,
    secrets: { change: (texts: Record<string, string>) => (held[at] = (texts['SESSION_SECRETS'] ?? '').split(',')) },
  })) as unknown as Instance[]
  const fleet = { instances } as unknown as Fleet
  const [one, other] = instances as [Instance, Instance]
  const first = ownSecret(fleet, one)
  const ofFirst = held[0]?.[0] ?? ''
  const second = ownSecret(fleet, other)
  const ofSecond = held[1]?.[0] ?? ''
  t.same(held, [
    [ofFirst, SECRETS],
    [ofSecond, SECRETS, ofFirst],
  ])
  void first.heal()
  t.ok(held[1]?.includes(ofSecond))
  void second.heal()
  const all = [SECRETS, ofFirst, ofSecond]
  t.same(held, [all, all])
  t.end()
})
