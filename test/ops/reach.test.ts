import { test } from 'tap'
import { unreachable } from '../../src/ops/reach.ts'

const ADVICE: Readonly<Record<string, RegExp>> = {
  // Its own certificate.
  CERT_HAS_EXPIRED: /is not trusted/,
  DEPTH_ZERO_SELF_SIGNED_CERT: /is not trusted/,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: /is not trusted/,
  ERR_TLS_CERT_ALTNAME_INVALID: /is not trusted/,
  // That of this server, or that it has none.
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: /asks for a client certificate/,
  'ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE': /asks for a client certificate/,
  'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE': /asks for a client certificate/,
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: /does not speak HTTP/,
  ERR_SSL_WRONG_VERSION_NUMBER: /whether it uses TLS/,
}

await test('--check: the advice on a fault of TLS names the side whose certificate is at fault', (t) => {
  for (const [fault, advice] of Object.entries(ADVICE)) {
    t.match(unreachable('API_URL', 'https://api.example', fault), { is: 'failed', advice }, fault)
  }
  t.end()
})
