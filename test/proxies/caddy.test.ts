import { test } from 'tap'
import { CADDY } from '../support/documented-proxies.ts'
import { enterNamespaces } from '../support/namespaces.ts'
import { checkProxy } from '../support/proxy-checks.ts'

const skip = enterNamespaces()

await test('Caddy as documented does what a balancer must', { skip }, (t) => checkProxy(t, CADDY))
