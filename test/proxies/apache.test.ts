import { test } from 'tap'
import { APACHE } from '../support/proxies/documented-proxies.ts'
import { enterNamespaces } from '../support/deployment/namespaces.ts'
import { checkProxy, checkSilentHost } from '../support/proxies/checks.ts'

const skip = enterNamespaces()

await test('Apache with the documented configuration meets the requirements for a balancer', { skip }, (t) =>
  checkProxy(t, APACHE),
)

await test('Apache loses no request to a host that is gone', { skip }, (t) => checkSilentHost(t, APACHE))
