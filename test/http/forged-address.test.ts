import { test } from 'tap'
import { sendTo } from '../support/user.ts'
import { ALONE } from '../support/server/settings.ts'
import { testServer } from '../support/server/test-server.ts'

const STARTS = 2
const REFUSED = /auth_error=try_later/

/** Whether one login start too many is refused, although each claims an address of its own. */
async function seesThrough(port: number, claim: (count: number) => string): Promise<boolean> {
  let last = ''
  for (let count = 0; count <= STARTS; count++) {
    const headers = { 'x-forwarded-for': claim(count) }
    const { headers: answered } = await sendTo(port, 'GET', '/auth/login', { headers })
    last = String(answered['location'])
  }
  return REFUSED.test(last)
}

const alone = (count: number): string => `203.0.113.${count}`
const inFrontWithPort = (count: number): string => `203.0.113.${count}:4711, 198.51.100.7:${count}`
const inFront = (count: number): string => `203.0.113.${count}, 198.51.100.7`

const SCENARIOS: [trustProxy: string, what: string, claim: (count: number) => string, isForged: boolean][] = [
  ['none', 'a claim is worth nothing', alone, true],
  ['192.0.2.0/24', 'a peer that is not in front of us is not believed', alone, true],
  ['1', 'what a client put before the word of the one balancer is not believed', inFront, true],
  ['1', 'the balancer is believed', alone, false],
  ['127.0.0.1', 'so is the address that is named', alone, false],
  ['1', 'a port does not make another client', (count) => `203.0.113.1:${4711 + count}`, true],
  ['1', 'nor behind an IPv6 address', (count) => `[2001:db8::1]:${4711 + count}`, true],
  ['127.0.0.1', 'nor where addresses are named', (count) => `203.0.113.1:${4711 + count}`, true],
  ['127.0.0.1,198.51.100.7', 'nor does one hide that an address is named', inFrontWithPort, false],
]

for (const [trustProxy, what, claim, isForged] of SCENARIOS) {
  await test(`TRUST_PROXY=${trustProxy}: ${what}`, async (t) => {
    const limits = { AUTH_STARTS_PER_MINUTE: String(STARTS), TRUST_PROXY: trustProxy }
    const { port } = await testServer(t, { ...ALONE, ...limits })
    t.equal(await seesThrough(port, claim), isForged)
  })
}
