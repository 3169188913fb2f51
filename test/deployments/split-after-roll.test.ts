import { test } from 'tap'
import { HAPROXY, NGINX } from '../support/proxies/documented-proxies.ts'
import { enterNamespaces } from '../support/deployment/namespaces.ts'
import { splitsAfterRoll } from '../support/proxies/split.ts'

const skip = enterNamespaces()

for (const [name, proxy] of [
  ['haproxy', { ...HAPROXY, hosts: NGINX.hosts }],
  ['nginx', NGINX],
] as const) {
  await test(`After a roll, ${name} splits requests evenly, however many sockets each instance has`, { skip }, (t) =>
    splitsAfterRoll(t, proxy),
  )
}
