import { test } from 'tap'
import { VARNISH } from '../support/documented-proxies.ts'
import { enterNamespaces } from '../support/namespaces.ts'
import { checkProxy } from '../support/proxy-checks.ts'

const skip = enterNamespaces()

await test('Varnish with the documented configuration meets the requirements for a balancer', { skip }, (t) =>
  checkProxy(t, VARNISH),
)
