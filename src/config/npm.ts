/**
 * Whether npm has started this process. npm passes on every signal that it gets, also one that the whole group of processes gets, such as
 * a Ctrl-C, which then comes twice.
 */
export const IS_UNDER_NPM = process.env['npm_lifecycle_event'] !== undefined
