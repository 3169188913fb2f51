import { test } from 'tap'
import { CADDY } from '../support/documented-proxies.ts'
import { enterNamespaces } from '../support/namespaces.ts'
import { checkProxy } from '../support/proxy-checks.ts'

const skip = enterNamespaces()

await test('Caddy with the documented configuration meets the requirements for a balancer', { skip }, (t) =>
  checkProxy(t, CADDY),
)
