/** Additional query parameters of an authorization request (docs/upstream.md, Authorization request). */
export const ATTRIBUTION_PARAMETERS = ['sidc', 'utm_campaign', 'utm_medium', 'utm_source'] as const
