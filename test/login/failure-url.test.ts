import { test } from 'tap'
import { failureUrl } from '../../src/login/return-to.ts'

const url = (known?: Parameters<typeof failureUrl>[2]) => failureUrl('https://app.example', 'access_denied', known)

await test('a failed login is reported at the root of the frontend, with its flow and way back if they are known', (t) => {
  t.equal(url(), 'https://app.example/?auth_error=access_denied')
  t.equal(
    url({ flow: 'signup', returnTo: '/a?b=c' }),
    'https://app.example/?auth_error=access_denied&flow=signup&return_to=%2Fa%3Fb%3Dc',
  )
  t.end()
})
