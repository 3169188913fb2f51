import { test } from 'tap'
import { CADDY } from '../support/proxies/documented-proxies.ts'
import { enterNamespaces } from '../support/deployment/namespaces.ts'
import { checkProxy, checkSilentHost } from '../support/proxies/checks.ts'

const skip = enterNamespaces()

await test('Caddy with the documented configuration meets the requirements for a balancer', { skip }, (t) =>
  checkProxy(t, CADDY),
)

await test('Caddy loses no request to a host that is gone', { skip }, (t) => checkSilentHost(t, CADDY))
