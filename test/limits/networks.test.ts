import { test } from 'tap'
import { network } from '../../src/limits/networks.ts'

await test('network() groups clients by IPv4 address or IPv6 /64', async (t) => {
  t.equal(network('192.0.2.1'), '192.0.2.1')
  t.equal(network('::ffff:192.0.2.1'), '192.0.2.1')
  t.equal(network('::FFFF:c000:201'), '192.0.2.1')
  t.equal(network('2001:db8::1'), network('2001:db8:0:0:ffff:ffff:ffff:ffff'))
  t.equal(network('2001:DB8:1:2::'), network('2001:db8:1:2:3:4:5:6'))
  t.not(network('2001:db8:1:2::'), network('2001:db8:1:3::'))
  t.equal(network('fe80::1%eth0'), network('fe80::2'))
  t.equal(network('1::2:3:4:5:6:7'), '1:0:2:3::/64')
  t.equal(network('::1'), '0:0:0:0::/64')
})
