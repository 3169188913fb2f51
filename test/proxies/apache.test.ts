import { test } from 'tap'
import { APACHE } from '../support/documented-proxies.ts'
import { enterNamespaces } from '../support/namespaces.ts'
import { checkProxy } from '../support/proxy-checks.ts'

const skip = enterNamespaces()

await test('Apache as documented does what a balancer must', { skip }, (t) => checkProxy(t, APACHE))
