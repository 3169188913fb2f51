import { test } from 'tap'
import { VARNISH } from '../support/documented-proxies.ts'
import { enterNamespaces } from '../support/namespaces.ts'
import { checkProxy } from '../support/proxy-checks.ts'

const skip = enterNamespaces()

await test('Varnish as documented does what a balancer must', { skip }, (t) => checkProxy(t, VARNISH))
