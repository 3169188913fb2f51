import { test } from 'tap'
import { readOptions } from '../sandbox/options.ts'

const PAGE = 'http://localhost:5173'

await test('The options of npm run sandbox', (t) => {
  t.same(readOptions([]), { page: undefined, host: undefined, writesEnv: false })
  t.same(readOptions(['--write-env']), { page: undefined, host: undefined, writesEnv: true })
  for (const origin of [PAGE, 'http://127.0.0.1:8080', 'http://app.localhost:5173', 'http://localhost']) {
    t.equal(readOptions(['--page', origin]).page?.origin, origin)
    t.equal(readOptions(['--page', `${origin}/`]).page?.origin, origin)
  }
  for (const host of ['192.168.1.20', 'desk.local', 'desk', '10.0.0.1.nip.io', 'localhost']) {
    t.equal(readOptions(['--page', PAGE, '--host', host]).host, host)
  }
  t.end()
})

await test('Options of npm run sandbox that cannot work are refused, each with what to do', (t) => {
  const refused: [args: string[], sentence: RegExp][] = [
    [['--page', 'localhost:5173'], /^--page must be the origin of your page, as in .*--page http:\/\/localhost:5173$/],
    [['--page', `${PAGE}/app`], /^--page must be the origin/],
    [['--page', 'ws://localhost:5173'], /^--page must be the origin/],
    [['--page', 'http://me@localhost:5173'], /^--page must be the origin/],
    [['--page', ''], /^--page must be the origin/],
    [['--page', 'http://192.168.1.20:8080'], /as in --page http:\/\/localhost:8080\. .*add --host 192\.168\.1\.20: /],
    [['--page', 'https://192.168.1.20:8080'], /as in --page http:\/\/localhost:8080\. .*add --host 192\.168\.1\.20: /],
    [['--page', 'http://[::1]:5173'], /as in --page http:\/\/localhost:5173$/],
    [['--page', 'http://localhost.example:5173'], /^--page must be on this machine/],
    [
      ['--page', 'https://localhost:8443'],
      /without TLS, and start with --page http:\/\/localhost:8443\. --host adds TLS/,
    ],
    [['--host', '192.168.1.20'], /: name the page, too, as in npm run sandbox -- --page .* --host 192\.168\.1\.20$/],
    [['--page', PAGE, '--write-env'], /: use one of the two$/],
    [['--page', PAGE, '--host', '192.168.1.20:3000'], /^--host must be .* without a port$/],
    [['--page', PAGE, '--host', 'https://desk.local'], /^--host must be/],
    [['--page', PAGE, '--host', '0.0.0.0'], /^--host must be/],
    [['--page', PAGE, '--host', '192.168.1'], /^--host must be/],
    [['--page', PAGE, '--host', 'fd00::1'], /^--host must be/],
    [['--page', PAGE, '--host', '../../x'], /^--host must be/],
    [['--page', PAGE, '--host', ''], /^--host must be/],
    [['--page', '--pge', 'x'], /^Option '--page' .* '--page=-XYZ'\. Usage: npm run sandbox/s],
    [['--page'], /Usage: npm run sandbox -- --page http:\/\/localhost:5173/],
    [[PAGE], /Usage: npm run sandbox -- --page http:\/\/localhost:5173/],
  ]
  for (const [args, sentence] of refused) t.throws(() => readOptions(args), { message: sentence }, args.join(' '))
  t.end()
})
