import { flag, text, textOr, type SettingRule } from './setting-rule.ts'

/** How the token endpoint may learn that a request is this client's (RFC 7591 §2, token_endpoint_auth_method). */
export const CLIENT_AUTH_METHODS = ['none', 'client_secret_post', 'client_secret_basic', 'private_key_jwt'] as const

/** The settings of the OAuth 2.0 provider, beside AUTH_URL and CLIENT_ID. */
export const providerRules = {
  CLIENT_AUTH: {
    kind: 'text',
    choices: CLIENT_AUTH_METHODS,
    description:
      'How this client authenticates with the provider (default: client_secret_post if CLIENT_SECRET is set, else none)',
  },
  CLIENT_SECRET: text('Client secret, only for a confidential client', 'printable'),
  CLIENT_KEY: text(
    'Private key of private_key_jwt as PEM or JWK; two to rotate: the first signs. Needs ISSUER',
    'clientKeys',
  ),
  OAUTH_SCOPE: textOr('trade account_manage', 'scope', 'Space-separated OAuth scopes to request'),
  LEGACY_APP_ID: text('app_id of an application on the legacy API, sent to the provider', 'printable'),
  AUTHORIZATION_PARAMS: text(
    'Query parameters that are added to every authorization request, for example audience=api; prompt is added to logins only',
    'authorizationParams',
  ),
  AUTHORIZATION_URL: text('Authorization endpoint (default: AUTH_URL + /oauth2/auth)', 'endpoint', 'https'),
  TOKEN_URL: text(
    'Token endpoint, which may be an inside address (default: AUTH_URL + /oauth2/token)',
    'endpoint',
    'https',
  ),
  PAR_URL: text('Endpoint to which authorization requests are pushed (RFC 9126)', 'endpoint', 'https'),
  REVOCATION_URL: text('Token revocation endpoint, called at logout', 'endpoint', 'https'),
  ISSUER: text("The provider's issuer identifier, to the letter (default: AUTH_URL)", 'httpUrl', 'https'),
  ISSUER_REQUIRED: flag(false, 'Whether a callback without iss (RFC 9207) is refused'),
  DISCOVERY: flag(
    false,
    "Whether the endpoints are read at the start from the issuer's metadata (RFC 8414, OpenID Connect Discovery)",
  ),
} as const satisfies Record<string, SettingRule>
