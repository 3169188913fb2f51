import { test } from 'tap'
import { LIGHTTPD } from '../support/proxies/documented-proxies.ts'
import { enterNamespaces } from '../support/deployment/namespaces.ts'
import { splitsAfterRoll } from '../support/proxies/split.ts'

const skip = enterNamespaces()

await test('After a roll, lighttpd splits requests evenly, however many sockets each instance has', { skip }, (t) =>
  splitsAfterRoll(t, LIGHTTPD),
)
