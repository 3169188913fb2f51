/** The codes of refusals that end a session where the provider grants others. */
export const AT_ONCE = [
  'interaction_required',
  'login_required',
  'consent_required',
  'account_selection_required',
  'access_denied',
  'invalid_token',
  'token_inactive',
]
/** Those that end it only when they last. */
export const LASTING = ['policy_violation', 'mfa_required', 'no/code']
/** Those that never do. */
export const NEVER = ['invalid_request', 'invalid_scope', 'unsupported_grant_type', 'invalid_target', 'use_dpop_nonce']
