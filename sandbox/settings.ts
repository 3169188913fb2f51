/** Settings that every server with the sandbox behind it has. */
export const SANDBOX_SETTINGS = {
  CLIENT_ID: 'demo-client',
  PARTNER_OVERVIEW_PATH: '/partners/analytics/v1/overview',
  IDENTITY_PATH: '/account/v1/me',
  IDENTITY_POINTER: '/data/user_id',
} as const
