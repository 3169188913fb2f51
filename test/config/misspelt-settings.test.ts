import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { settingRules } from '../../src/config/settings.ts'
import { ALONE } from '../support/server/settings.ts'

const ABOUT_NAMES = /is not a setting|is not read/

/** The warnings about names of variables. */
function warningsOf(names: readonly string[]): string[] {
  const variables = Object.fromEntries(names.map((name) => [name, 'a-value-not-to-print']))
  return readConfig({ ...variables, ...ALONE }).warnings.filter((warning) => ABOUT_NAMES.test(warning))
}

await test('a variable whose name is almost that of a setting is warned about, without its value', (t) => {
  t.same(warningsOf(['SESSION_SECRET', 'UPSTREAM_BUGDET', 'REDIS_URI', 'OPS_TOKEN_FIEL', 'MAX_SESSIONS_PER_SUBJET']), [
    'SESSION_SECRET is not a setting: did you mean SESSION_SECRETS?',
    'UPSTREAM_BUGDET is not a setting: did you mean UPSTREAM_BUDGET?',
    'REDIS_URI is not a setting: did you mean REDIS_URL?',
    'OPS_TOKEN_FIEL is not a setting: did you mean OPS_TOKEN_FILE?',
    'MAX_SESSIONS_PER_SUBJET is not a setting: did you mean MAX_SESSIONS_PER_SUBJECT?',
  ])
  t.match(warningsOf(['CLIENT_ID_FILE']), [/^CLIENT_ID_FILE is not read: only SESSION_SECRETS, .* can be in a file$/])
  t.end()
})

await test('a start that fails for want of a setting tells which variable may be meant for it', (t) => {
  t.throws(() => readConfig({ ...ALONE, CLIENT_ID: '', CLIENT_ID_: 'never-to-be-printed' }), {
    message:
      '1 setting(s) are wrong:\n  CLIENT_ID is required: printable ASCII\nCLIENT_ID_ is not a setting: did you mean CLIENT_ID?',
  })
  t.end()
})

await test('no setting is taken for another, and the rest of an environment is left alone', (t) => {
  const usual = ['HOME', 'HOSTNAME', 'PATH', 'PWD', 'USER', 'LANG', 'TERM', 'SHLVL', 'LOGNAME', 'MAIL', 'EDITOR', 'TZ']
  const platform = ['NODE_ENV', 'NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS', 'npm_config_cache', 'REDIS_MAXMEMORY']
  const cluster = ['KUBERNETES_PORT', 'KUBERNETES_SERVICE_HOST', 'REDIS_PORT', 'REDIS_SERVICE_HOST', 'INVOCATION_ID']
  t.same(warningsOf([...usual, ...platform, ...cluster]), [])
  // A typing error in one name must not be taken for another setting that differs as little.
  const names = Object.keys(settingRules)
  for (const name of names) {
    const misspelt = `${name.slice(0, -1)}~`
    if (misspelt.length >= 6) t.same(warningsOf([misspelt]), [`${misspelt} is not a setting: did you mean ${name}?`])
  }
  t.end()
})
