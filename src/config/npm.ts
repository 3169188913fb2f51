/**
 * Whether npm has started this process. npm passes on SIGINT and SIGTERM, also one that the whole group of processes gets, such as
 * a Ctrl-C, which then may come twice.
 */
export const IS_UNDER_NPM = process.env['npm_lifecycle_event'] !== undefined
