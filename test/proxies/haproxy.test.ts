import { test } from 'tap'
import { HAPROXY } from '../support/documented-proxies.ts'
import { enterNamespaces } from '../support/namespaces.ts'
import { checkProxy } from '../support/proxy-checks.ts'

const skip = enterNamespaces()

await test('haproxy as documented does what a balancer must', { skip }, (t) => checkProxy(t, HAPROXY))
