import type { ProviderConfig } from '../config/provider.ts'
import { content, TEXT, type Json } from '../proxy/document-parts.ts'
import { get, operation, problems, redirect } from './own-operation.ts'

/** With OIDC. */
export const LOGGED_OUT: Record<string, Json> = {
  '/auth/logged-out': get(
    'login',
    'loggedOut',
    'Return from a logout at the provider',
    'With OIDC. The provider sends browsers here. Changes nothing.',
    { responses: { '303': redirect('To the frontend, with logged_out=provider'), ...problems() } },
  ),
}

/** With BACKCHANNEL_LOGOUT. */
export const BACKCHANNEL: Record<string, Json> = {
  '/auth/backchannel-logout': {
    post: operation(
      'login',
      'backchannelLogout',
      'Log out by the provider',
      'With BACKCHANNEL_LOGOUT. The provider ends sessions (OpenID Connect Back-Channel Logout). The token is the credential.',
      {
        requestBody: {
          required: true,
          content: content('application/x-www-form-urlencoded', {
            type: 'object',
            required: ['logout_token'],
            properties: { logout_token: { ...TEXT, description: 'A signed JWT' } },
          }),
        },
        responses: {
          '200': { description: 'The sessions that it names have ended, whether or not there were any' },
          ...problems('rate_limited', 'provider_unavailable', 'session_store_unavailable'),
        },
      },
    ),
  },
}

/** The routes of logouts at the provider and by it, as far as a server with these settings has them. */
export function providerLogoutPaths(oidc: ProviderConfig['oidc']): Record<string, Json> {
  return { ...(oidc && LOGGED_OUT), ...(oidc?.backchannel && BACKCHANNEL) }
}
