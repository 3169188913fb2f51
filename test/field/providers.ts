import { type Kind, type Row, type Source } from './row.ts'

type Suite = Extract<Source, { debian: string }>['debian']

const authlib = (suite: Suite): Pick<Row, 'product' | 'from' | 'suites' | 'environment'> => ({
  product: 'Authlib',
  from: { debian: suite, packages: ['python3-authlib', 'python3-flask'], programs: PYTHON },
  suites: { Tests: ['test/providers/authlib.test.ts'] },
  environment: { PYTHON: 'PROGRAMS/python3' },
})
const django = (suite: Suite): ReturnType<typeof authlib> => ({
  product: 'django-oauth-toolkit',
  from: { debian: suite, packages: ['python3-django-oauth-toolkit'], programs: PYTHON },
  suites: { Tests: ['test/providers/django-oauth-toolkit.test.ts'] },
  environment: { PYTHON: 'PROGRAMS/python3' },
})
const glewlwyd = (suite: Suite): ReturnType<typeof authlib> => ({
  product: 'Glewlwyd',
  from: { debian: suite, packages: ['glewlwyd'], programs: { glewlwyd: '/usr/bin/glewlwyd' } },
  suites: { Tests: ['test/providers/glewlwyd.test.ts', 'test/providers/glewlwyd-logout.test.ts'] },
  environment: { GLEWLWYD: 'PROGRAMS/../root' },
})
/** Perl modules that its portal recommends, and does not start without. */
const RECOMMENDED = [
  ...['convert-pem', 'crypt-jwt', 'crypt-openssl-bignum', 'email-sender', 'gd', 'gd-securityimage', 'image-magick'],
  ...['io-string', 'mime-tools', 'string-random'],
].map((name) => `lib${name}-perl`)
/** How its logouts differ. */
const AFTER_CONSENT =
  `After a consent in the same browser, a logout ends on its own login page: switch the question off for
this client (\`oidcRPMetaDataOptionsBypassConsent\`).`.replace('\n', ' ')
const lemonldap = (suite: Suite): ReturnType<typeof authlib> => ({
  product: 'LemonLDAP::NG',
  from: {
    debian: suite,
    packages: ['liblemonldap-ng-portal-perl', ...RECOMMENDED],
    programs: { perl: '/usr/bin/perl' },
  },
  suites: { Tests: ['test/providers/lemonldap.test.ts', 'test/providers/lemonldap-logout.test.ts'] },
  environment: { PERL: 'PROGRAMS/perl' },
})
const PYTHON = { python3: '/usr/bin/python3' }

export const PROVIDERS: Kind = {
  title: 'Providers',
  text: `[Providers](providers.md) has the settings of each. One test is all of this: a login, a denied consent, a refresh by two instances at once,
a refused refresh, a logout and its revocation, a wrong client, \`--check\`, and a provider that is away; with OpenID Connect also
logouts at the provider and by it.`,
  columns: ['Tests'],
  rows: [
    {
      id: 'oidc-provider',
      product: 'oidc-provider',
      from: { dependency: 'node_modules/oidc-provider' },
      suites: { Tests: ['test/providers/oidc-provider.test.ts', 'test/oidc/provider-logout.test.ts'] },
    },
    {
      id: 'node-oauth',
      product: '@node-oauth/oauth2-server',
      from: { dependency: 'test/providers/node_modules/@node-oauth/oauth2-server' },
      suites: { Tests: ['test/providers/node-oauth.test.ts'] },
      note: 'It has no revocation.',
    },
    {
      id: 'oauth2-mock-server',
      product: 'oauth2-mock-server',
      from: { dependency: 'test/providers/node_modules/oauth2-mock-server' },
      suites: { Tests: ['test/providers/oauth2-mock-server.test.ts'] },
      note: 'Its revocation has no effect.',
    },
    { id: 'authlib-1.2', ...authlib('bookworm') },
    { id: 'authlib-1.6', ...authlib('trixie') },
    { id: 'authlib-1.9', ...authlib('sid') },
    { id: 'django-1.7', ...django('bookworm') },
    { id: 'django-3.0', ...django('trixie') },
    { id: 'django-3.4', ...django('forky') },
    {
      ...django('forky'),
      id: 'django-discovered',
      product: 'django-oauth-toolkit, `DISCOVERY=true`',
      environment: { PYTHON: 'PROGRAMS/python3', DISCOVERY: 'true' },
    },
    { id: 'glewlwyd-2.7.5', ...glewlwyd('bookworm') },
    { id: 'glewlwyd-2.7.6', ...glewlwyd('trixie') },
    {
      id: 'lemonldap-2.16',
      ...lemonldap('bookworm'),
      note: `It has no revocation, and tells nobody of a logout, so a session ends at its next refresh. ${AFTER_CONSENT}`,
    },
    { id: 'lemonldap-2.21', ...lemonldap('trixie'), note: `It has no revocation. ${AFTER_CONSENT}` },
    {
      ...lemonldap('sid'),
      id: 'lemonldap-2.23',
      environment: { PERL: 'PROGRAMS/perl', REVOKES: 'true' },
      note: `It tells of a revocation as of a logout, though its own session goes on. ${AFTER_CONSENT}`,
    },
  ],
}
