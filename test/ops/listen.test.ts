import dns from 'node:dns'
import { isIP } from 'node:net'
import Fastify from 'fastify'
import { test } from 'tap'
import { listenOrExit } from '../../src/ops/exit.ts'
import type { ServerLog } from '../../src/telemetry/log.ts'

await test('localhost is one address: Fastify would open a server of its own for the other, without the limits of this one', async (t) => {
  const { lookup } = dns
  t.teardown(() => Object.assign(dns, { lookup }))
  Object.assign(dns, {
    lookup: (
      name: string,
      _options: dns.LookupOptions,
      done: (error: null, found: readonly dns.LookupAddress[]) => void,
    ) => {
      const addresses = name === 'localhost' ? ['127.0.0.1', '::1'] : [name]
      done(
        null,
        addresses.map((address) => ({ address, family: isIP(address) })),
      )
    },
  })
  const server = Fastify()
  t.teardown(() => server.close())
  await listenOrExit(server, { host: 'localhost', port: 0 }, {} as ServerLog)
  t.match(server.addresses(), [{ address: '127.0.0.1' }])
  t.equal(server.addresses().length, 1)
})
