/*
 * Imported before oidc-provider, which works with a Node that is no LTS release yet, but prints a warning that a developer could do
 * nothing about.
 */
if (process.release.lts === undefined) Object.assign(process.release, { lts: 'not yet' })
