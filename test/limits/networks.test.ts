import { test } from 'tap'
import { network, networks } from '../../src/limits/networks.ts'

await test('network() groups clients by IPv4 address or IPv6 /64', async (t) => {
  t.equal(network('192.0.2.1'), '192.0.2.1')
  t.equal(network('::ffff:192.0.2.1'), '192.0.2.1')
  t.equal(network('::FFFF:c000:201'), '192.0.2.1')
  t.equal(network('2001:db8::1'), network('2001:db8:0:0:ffff:ffff:ffff:ffff'))
  t.equal(network('2001:DB8:1:2::'), network('2001:db8:1:2:3:4:5:6'))
  t.not(network('2001:db8:1:2::'), network('2001:db8:1:3::'))
  t.equal(network('fe80::1%eth0'), network('fe80::2'))
  t.equal(network('::ffff:192.168.100.203'), '192.168.100.203')
  t.equal(network('64:ff9b::192.0.2.1'), '192.0.2.1', 'IPv4 clients whose addresses a network translates (RFC 6052)')
  t.equal(network('64:FF9B:0:0::c000:201'), '192.0.2.1')
  t.equal(network('64:ff9b::198.51.0.0'), '198.51.0.0')
  t.equal(network('64:ff9b::1:192.0.2.1'), '64:ff9b:0:0::/64', 'not of this prefix')
  t.equal(network('64:ff9b:1::192.0.2.1'), '64:ff9b:1:0::/64')
  t.equal(network('1::2:3:4:5:6:7'), '1:0:2:3::/64')
  t.equal(network('1::3:4:5:6:7'), '1:0:0:3::/64')
  t.equal(network('::1'), '0:0:0:0::/64')
})

await test('networks() are the /64, the /56 and the /48 of an IPv6 address, and an IPv4 address alone', async (t) => {
  t.same(networks('192.0.2.1'), ['192.0.2.1'])
  t.same(networks('2001:db8:1:2f3:4:5:6:7'), ['2001:db8:1:2f3::/64', '2001:db8:1:200::/56', '2001:db8:1::/48'])
  t.same(networks('2001:db8::'), ['2001:db8:0:0::/64', '2001:db8:0:0::/56', '2001:db8:0::/48'])
  t.same(networks(undefined), ['gone'], 'a connection that has closed')
  t.same(networks('x::ffff:192.0.2.1%y'), ['x::ffff:192.0.2.1'], 'what is no address counts by itself')
})
