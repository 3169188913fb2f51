import { test } from 'tap'
import { CADDY } from '../support/documented-proxies.ts'
import { enterNamespaces } from '../support/namespaces.ts'
import { splitsAfterRoll } from '../support/proxy-split.ts'

const skip = enterNamespaces()

await test('After a roll, Caddy splits requests evenly, however many sockets each instance has', { skip }, (t) =>
  splitsAfterRoll(t, CADDY),
)
