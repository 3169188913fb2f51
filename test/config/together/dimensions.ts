import { IDENTITY_PATH } from '../../support/upstream/scripted-upstream.ts'
import { OPS_TOKEN } from '../../support/login/identity.ts'

/** Settings, and in small letters what the world around the server is like. `{…}` stands for an address or a secret of that world. */
export type Options = Readonly<Record<string, string>>

const OIDC = { OIDC: 'true', DISCOVERY: 'true', OAUTH_SCOPE: 'openid trade', JWKS_URL: '{keys}/jwks' }
const IDENTITY = { IDENTITY_PATH, IDENTITY_POINTER: '/data/id' }

/** What an operator may choose, each from its default to its extremes. Choices that only make sense together are one. */
export const DIMENSIONS: Readonly<Record<string, readonly Options[]>> = {
  store: [{}, { redis: 'one' }, { redis: 'one', instances: '2' }, { redis: 'cluster', instances: '2' }],
  frontend: [{}, { FRONTEND_URL: '{frontend}' }],
  secrets: [{}, { SESSION_SECRETS_FILE: '{secrets}' }],
  identity: [
    {},
    IDENTITY,
    { ...OIDC, END_SESSION_URL: '{keys}/end' },
    {
      ...OIDC,
      BACKCHANNEL_LOGOUT: 'true',
      IDENTITY_CLAIMS: 'name',
      END_SESSION_URL: '{keys}/end?p=1',
      ID_TOKEN_HINT: 'true',
    },
    { ...OIDC, BACKCHANNEL_LOGOUT: 'true', BACKCHANNEL_WITHOUT_SID: 'subject' },
  ],
  'names in the log': [{}, { LOG_SUBJECT: 'plain' }],
  'sessions of a subject': [{}, { MAX_SESSIONS_PER_SUBJECT: '0' }, { MAX_SESSIONS_PER_SUBJECT: '1' }],
  client: [
    {},
    { CLIENT_SECRET: 'the-secret-of-the-client' },
    { CLIENT_SECRET: 'the-secret-of-the-client', CLIENT_AUTH: 'client_secret_basic' },
    { CLIENT_KEY: '{key}', CLIENT_AUTH: 'private_key_jwt', ISSUER: '{provider}' },
  ],
  'pushed requests': [{}, { PAR_URL: '{provider}/par' }],
  revocation: [{ REVOCATION_URL: '{provider}/oauth2/revoke' }, { REVOCATION_URL: '' }],
  'refresh tokens': [{ refresh: 'yes' }, {}],
  'lifetimes of tokens': [{}, { lifetime: 'unknown', TOKEN_FALLBACK_SECONDS: '90' }],
  issuer: [{}, { ISSUER: '{provider}', ISSUER_REQUIRED: 'true' }],
  'app ids': [{}, { SERVICE_APP_ID: 'another-id', APP_ID_HEADER: 'X-App', LEGACY_APP_ID: '1234' }],
  parameters: [{}, { AUTHORIZATION_PARAMS: 'audience=api&prompt=consent' }],
  attribution: [{}, { ATTRIBUTION_TTL_SECONDS: '0' }],
  'starts of logins': [{ AUTH_STARTS_PER_MINUTE: '0' }, { AUTH_STARTS_PER_MINUTE: '1000' }],
  cookies: [{}, { DEV_INSECURE_COOKIES: 'true' }],
  pages: [
    {},
    { STATIC_DIR: '{pages}' },
    { STATIC_DIR: '{pages}', STATIC_CSP: "default-src 'none'", FRONTEND_ORIGINS: '{public},https://other.example' },
  ],
  proxies: [{}, { TRUST_PROXY: '1' }, { TRUST_PROXY: '127.0.0.1,10.0.0.0/8' }],
  operators: [{ OPS_TOKEN }, {}],
  log: [{}, { LOG_LEVEL: 'info' }, { LOG_LEVEL: 'silent' }, { LOG_LEVEL: 'trace' }],
  'requests of a session': [{}, { API_REQUESTS_PER_MINUTE: '100000' }],
  bodies: [{}, { MAX_BODY_BYTES: '64' }, { MAX_BODY_BYTES: '1073741824' }],
  'limits of sessions': [
    {},
    { SESSION_IDLE_SECONDS: '600', SESSION_MAX_SECONDS: '600' },
    { SESSION_MAX_SECONDS: '2592000' },
  ],
  'relays and sessions': [{}, { RELAYS_KEEP_SESSION: 'false', RELAY_STORE_GRACE_SECONDS: '1' }],
  'sockets of a user': [{}, { MAX_RELAYS_PER_SESSION: '1', MAX_SESSION_SOCKETS: '1' }],
  'sockets of an address': [{}, { MAX_PUBLIC_RELAYS_PER_IP: '2', PUBLIC_HANDSHAKES_PER_MINUTE: '0' }],
  'sockets of a process': [{}, { MAX_RELAYS: '12' }],
  'bytes that wait': [{}, { MAX_BUFFERED_BYTES: '2048', MAX_WAITING_BYTES: '1048576' }],
  messages: [{}, { MAX_MESSAGE_BYTES: '512', MAX_UPSTREAM_MESSAGE_BYTES: '4096' }],
  feed: [
    {},
    { PUBLIC_FEED: 'shared' },
    {
      PUBLIC_FEED: 'shared',
      FEED_CACHE_SECONDS: '0',
      FEED_LINGER_SECONDS: '0',
      FEED_RECONNECT_SPREAD_SECONDS: '0',
      FEED_CONFLATE_BYTES: '1024',
    },
    { PUBLIC_FEED: 'shared', FEED_SUBSCRIPTIONS: '1', FEED_SUBSCRIPTIONS_PER_SOCKET: '1', FEED_MAX_SOCKETS: '1' },
    { PUBLIC_FEED: 'shared', FEED_MAX_OWN_SOCKETS: '0', FEED_SUBSCRIPTIONS_PER_SOCKET: '1' },
  ],
  'keys that must be': [
    {},
    { REQUIRE_IDEMPOTENCY_KEY: 'all' },
    { REQUIRE_IDEMPOTENCY_KEY: '/payment-agents/v1/transfer' },
  ],
  'bodies with a key': [{}, { IDEMPOTENCY_MAX_BODY_BYTES: '0' }],
  'kept responses': [
    {},
    { IDEMPOTENCY_MAX_ANSWER_BYTES: '0' },
    { IDEMPOTENCY_MAX_RECORDS: '1' },
    { IDEMPOTENCY_MAX_KEPT_BYTES: '0' },
  ],
  'records of keys': [{}, { IDEMPOTENCY_COMPACT: 'true' }, { IDEMPOTENCY_TTL_SECONDS: '2592000' }],
  'time limits': [
    {},
    { UPSTREAM_HEADERS_SECONDS: '1', UPSTREAM_BODY_SECONDS: '1', SLOW_CONSUMER_SECONDS: '1', LOGIN_TTL_SECONDS: '5' },
  ],
  health: [{}, { HEALTH_SECONDS: '1' }],
  connections: [{}, { UPSTREAM_MAX_CONNECTION_SECONDS: '1', UPSTREAM_CONNECT_SECONDS: '1' }],
  budget: [
    {},
    { UPSTREAM_BUDGET: '1000/1' },
    { UPSTREAM_BUDGET: '1000/1,2000/3', UPSTREAM_BUDGET_SHARES: '100,100,100', UPSTREAM_BUDGET_ALONE: '0' },
    {
      UPSTREAM_BUDGET: '1000/1',
      UPSTREAM_BUDGET_ALONE: '0.9',
      UPSTREAM_BUDGET_INSTANCES: '1',
      UPSTREAM_BUDGET_NAME: 'mine',
    },
  ],
  overview: [{}, { PARTNER_OVERVIEW_PATH: '/partners/analytics/v1/overview' }],
  traces: [
    {},
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: '{collector}',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '20',
    },
    {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: '{collector}/own',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_BSP_SCHEDULE_DELAY: '20',
      TRUST_TRACEPARENT: 'true',
    },
    { OTEL_EXPORTER_OTLP_ENDPOINT: '{collector}', OTEL_TRACES_SAMPLER: 'always_off' },
  ],
  'one-time URLs': [{}, { OTP_URL_POINTER: '/data/links/0', OTP_HOSTS: 'elsewhere.example' }],
  readiness: [{}, { READY_GRACE_SECONDS: '0', DRAIN_SECONDS: '0', DRAIN_WAIT_SECONDS: '0' }],
}
